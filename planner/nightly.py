"""The night: fetch, observe, plan, report, as named steps over one store.

This module composes the rooms and computes nothing itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import resource
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money, quality
from data.errors import ConfigError, DataError, LoadfactorError, Problem, ProviderError
from data.frames import records
from data.hours import iso
from data.nights import newest_before, prepare, write_night
from data.plan import Plan
from data.schema import DEMAND_OUT
from planner import __version__, session
from planner.answers import DONE, FAILED, WITH_WARNINGS
from planner.cli.sources import pull_sources
from planner.cli.unfetched import CHECK as NOT_FETCHED
from planner.cli.unfetched import unfetched
from planner.planning import plan_night
from providers.files.tables import read_table
from reports.recommendations import report_markdown
from reports.tables import FILES, Tables, csv_text, read_tables
from reports.terminal import demo_summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

    from data.plan import SolveFigures
    from planner.cli.sources import Outcome
    from planner.cli.unfetched import Unfetched
    from planner.planning import NightInputs, NightPlan
    from planner.session import Session

log = logging.getLogger("loadfactor")
_LIBRARIES = ("pandas", "pulp", "highspy", "ibis-framework", "duckdb", "pyarrow")


@dataclass(slots=True)
class Timings:
    """Seconds and peak memory (MiB) of each step; nothing else here looks at a clock."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Times what is done inside it, and says on the log that it began."""
        log.info("%s ...", name)
        began = time.perf_counter()
        yield
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        mib = peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
        seconds = round(time.perf_counter() - began, 3)
        self.rows.append({"step": name, "seconds": seconds, "peak_mib": round(mib, 1)})


@dataclass(frozen=True, slots=True)
class Night:
    """A finished night: where it lies, its plan and tables, and the exit code it deserves."""

    folder: Path
    plan: Plan
    tables: Tables
    exit_code: int
    warnings: tuple[str, ...]
    timings: tuple[dict[str, Any], ...]


def open_session(config: Path | None, store: Path | None, as_of: date) -> Session:
    """The session that the common options describe, with the tables that its files hold today."""
    return session.open_session(config, store, as_of, read_table)


def run_night(run: Session, out: Path, timings: Timings, load_first: bool) -> Night:
    """One whole night; with `load_first` its sources are fetched before.

    A delivery that is rejected leaves the former one in place, and a cloud that cannot be reached
    leaves what was loaded of it, marked stale: the night goes on, and its exit code says so.
    """
    prepare(out)
    warnings: list[str] = []
    rejected = False
    down: tuple[Unfetched, ...] = ()
    if load_first:
        with timings.step("fetch"):
            outcomes = _fetched(run)
        rejected = any(str(d.status) == "rejected" for one in outcomes for d in one.deliveries)
        down = unfetched(run, outcomes)
        warnings += _loading_warnings(outcomes, down)
    with timings.step("observe"):
        last, told = _last_night(out, run.as_of.isoformat())
        given = _without(replace(_observed(run, down), last=last), down)
    warnings += told
    with timings.step("plan"):
        made = plan_night(given)
    tables = Tables(
        recommendations=made.recommendations,
        commitments=made.commitments,
        limits=made.limits,
        idle=made.idle,
        quality=made.quality,
    )
    with timings.step("report"):
        files = _night_files(run, made, tables)
    warnings += _plan_warnings(made)
    files["timings.json"] = _json({"steps": timings.rows})
    folder = write_night(out, run.as_of.isoformat(), files)
    code = FAILED if rejected else WITH_WARNINGS if warnings else DONE
    return Night(folder, made.plan, tables, code, tuple(warnings), tuple(timings.rows))


def _fetched(run: Session) -> list[Outcome]:
    """What became of the sources; raises what is wrong with the configuration, or with files."""
    if not run.settings.sources:
        log.warning("no source is configured: the night works on what the store holds")
        return []
    outcomes = pull_sources(run)
    for one in outcomes:
        is_own = one.kind == "files" and not isinstance(one.error, ProviderError)
        if one.error is not None and (is_own or isinstance(one.error, ConfigError)):
            raise one.error
    return outcomes


def _observed(run: Session, down: tuple[Unfetched, ...]) -> NightInputs:
    """What the night rests on; where there is nothing, the sources that failed are why."""
    try:
        return session.night_inputs(run)
    except DataError as error:
        lacking = [Problem(one.finding.scope, one.detail) for one in down]
        raise DataError(error.message, [*error.problems, *lacking]) from error


def _without(given: NightInputs, down: tuple[Unfetched, ...]) -> NightInputs:
    """The inputs, with a finding for each source that failed, and its accounts marked as stale."""
    if not down:
        return given
    told = [quality.Finding(**row) for row in records(given.quality)]
    told += [one.finding for one in down]
    own = [row for one in down for row in one.accounts]
    return replace(given, quality=quality.table(told), freshness=(*given.freshness, *own))


def _last_night(out: Path, day: str) -> tuple[Plan | None, list[str]]:
    """The plan of the newest night before the day, and a warning where it cannot be read."""
    folder = newest_before(out, day)
    if folder is None:
        return None, []
    try:
        return Plan.from_text((folder / "plan.json").read_text(encoding="utf-8")), []
    except (OSError, UnicodeDecodeError, LoadfactorError) as error:
        what = str(error).partition("\n")[0]
        return None, [f"the night of {folder.name} cannot be read and has no say: {what}"]


def render_again(folder: Path) -> tuple[str, dict[str, Any]]:
    """The report of a past night, rendered from its files alone, as text and as a document."""
    try:
        text = (folder / "plan.json").read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(
            f"{folder} is no night: plan.json cannot be read ({error.strerror})"
        ) from None
    report = report_markdown(Plan.from_text(text), read_tables(folder))
    return report, {"folder": str(folder), "report": report}


def short_summary(night: Night) -> tuple[str, dict[str, Any]]:
    """What a person sees at the end of a night, and the same as a document."""
    summary = json.loads(night.plan.to_text())["summary"]
    document = {
        "folder": str(night.folder),
        "warnings": list(night.warnings),
        "summary": summary,
    }
    return demo_summary(night.plan, night.folder), document


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as JSON writes them: decimals as texts, times as ISO, missing as null."""
    return [{name: _plain(value) for name, value in row.items()} for row in records(frame)]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return money.text(value)
    if isinstance(value, pd.Timestamp):
        text = iso(value.to_pydatetime())
        return text.removesuffix("T00:00:00Z") if text.endswith("T00:00:00Z") else text
    return value


def _night_files(run: Session, made: NightPlan, tables: Tables) -> dict[str, str]:
    frames = (tables.recommendations, tables.commitments, tables.limits, tables.idle)
    files = {
        name: csv_text(frame, table)
        for (name, table), frame in zip(FILES.items(), (*frames, tables.quality), strict=True)
    }
    files["demand.csv"] = csv_text(made.demand_hours, DEMAND_OUT)
    files["plan.json"] = made.plan.to_text()
    files["report.md"] = report_markdown(made.plan, tables)
    files["run.json"] = _json(_run_record(run, made))
    return files


def _run_record(run: Session, made: NightPlan) -> dict[str, Any]:
    """What the night rested on: deliveries, versions, and how the solver ended."""
    summary = json.loads(made.plan.to_text())["summary"]
    solve, since = summary["solve"], summary["reasons"]["since"]
    return {
        "date": made.plan.date,
        "data_as_of": made.plan.data_as_of,
        "loadfactor": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "inputs": [
            {
                "delivery_id": one.delivery_id,
                "source": one.source,
                "dataset": one.dataset,
                "billing_periods": list(one.billing_periods),
                "rows": one.rows,
                "sha256": one.sha256,
            }
            for one in run.store.deliveries()
        ],
        "kept": [
            {
                "table": name,
                "file": path.name,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for name, path in sorted(session.kept_files(run.settings).items())
        ],
        "last_night": None if since is None else since["date"],
        "solve": solve,
    }


def _loading_warnings(outcomes: list[Outcome], down: tuple[Unfetched, ...]) -> list[str]:
    warnings = [f"{one.finding.scope} {one.detail}" for one in down]
    silent = {one.source for one in down}
    for outcome in outcomes:
        if outcome.source not in silent:
            warnings += [f"source {outcome.source}: {text}" for text in outcome.warnings]
        for one in outcome.deliveries:
            if str(one.status) == "rejected":
                warnings.append(f"{one.path}: rejected, the former delivery stays: {one.reason}")
            warnings += [f"{one.path}: {text}" for text in one.warnings]
    return warnings


def _plan_warnings(made: NightPlan) -> list[str]:
    summary = made.plan.summary
    warnings = list(made.warnings)
    if summary.hours_observed < summary.least_history_hours:
        warnings.append(f"only {summary.hours_observed} hours of history: no commitment is advised")
    warnings += [
        f"{row.source} {row.dataset}{_of_account(row.account)} is stale: it ends at {row.data_to}"
        for row in summary.freshness
        if row.stale
    ]
    if summary.solve is not None and summary.solve.short_gpu_hours_per_month > 0:
        hours = summary.solve.short_gpu_hours_per_month
        what = "are not served: the report says by class what stands in the way"
        warnings.append(f"{hours:,.0f} needed GPU-hours a month {what}")
    if summary.solve is not None and summary.solve.status != "optimal":
        warnings.append(_unproven(summary.solve))
    found = [row for row in records(made.quality) if row["severity"] != "info"]
    warnings += [
        f"{row['check']}: {row['scope']}: {row['detail']}"
        for row in found
        if row["check"] != NOT_FETCHED  # told with the loading
    ]
    return warnings


def _of_account(account: str) -> str:
    return "" if account == "all" else f" of account {account}"


def _unproven(solve: SolveFigures) -> str:
    """What a run that its time ended can still say of its plan."""
    short = [one.stage for one in solve.stages if one.status != "optimal"]
    return (
        f"the time limit ended the search ({', '.join(short) or 'plan'}): the plan is the best "
        f"found, and the best possible may cost up to {solve.gap:.3%} less"
    )


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
