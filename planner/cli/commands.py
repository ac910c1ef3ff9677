"""One function a command: open the session, call one function, shape the answer."""

from __future__ import annotations

import logging
import shutil
import tempfile
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import UsageError
from planner.answers import DONE, FAILED, WITH_WARNINGS, Answer
from planner.cli.solving import solve

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    import pandas as pd

    from data.store import DeliveryResult
    from planner.nightly import Night
    from planner.session import Session

log = logging.getLogger("loadfactor")
DEMO_DAY = "2026-10-31"


def init(options: argparse.Namespace) -> Answer:
    """Writes the commented configuration; never over a file that is there."""
    from planner.config import DEFAULT_TOML

    target: Path = options.out
    try:
        with target.open("x", encoding="utf-8") as handle:
            handle.write(DEFAULT_TOML)
    except FileExistsError:
        raise UsageError(f"{target} exists; name another file with --out") from None
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    return Answer(f"wrote {target}", {"path": str(target)})


def load(options: argparse.Namespace) -> Answer:
    """Loads files and delivery folders; one line each."""
    from providers.files.loading import load as load_paths

    session = _session(options)
    results = load_paths(options.paths, session.store, dataset=options.dataset, force=options.force)
    _log_deliveries(results)
    document = {"deliveries": [one.as_json() for one in results]}
    columns = ["path", "source", "dataset", "billing_periods", "rows", "status"]
    rows = [{**row, "billing_periods": _months(row)} for row in document["deliveries"]]
    return Answer(_table(rows, columns), document, _loading_code(results))


def fetch(options: argparse.Namespace) -> Answer:
    """Pulls the exports of the configured sources; one line each."""
    from planner.cli.sources import code_of, pull_sources, row_of

    outcomes = pull_sources(_session(options), options.only, options.force)
    for one in outcomes:
        if one.error is not None:
            log.warning("%s: %s", one.source, one.error)
        for warning in one.warnings:
            log.warning("%s: warning: %s", one.source, warning)
        _log_deliveries(list(one.deliveries))
    rows = [row_of(one) for one in outcomes]
    document = {"sources": [one.as_json() for one in outcomes]}
    return Answer(_table(rows, list(rows[0])), document, code_of(outcomes))


def totals(options: argparse.Namespace) -> Answer:
    """Money and hours in the store."""
    from data.totals import doubled_datasets, totals_json
    from data.totals import totals as sums
    from planner.classes import assign

    session = _session(options)
    billing = session.store.table("billing", _engine(session))
    if "workload_class" in options.by:
        billing = assign(billing, session.settings.classes)
    for sentence in doubled_datasets(billing, options.by):
        log.warning("note: %s", sentence)
    document = totals_json(sums(billing, options.by))
    return _rows_answer(document)


def _engine(session: Session) -> Any:
    """The engine that the store names, if it is not the store's own."""
    from data import spark

    return spark.connect() if session.store.engine == "spark" else None


def check(options: argparse.Namespace) -> Answer:
    """The quality table; exit 4 where a finding is more than a note."""
    from planner.session import check_findings

    return _findings(check_findings(_session(options)))


def idle(options: argparse.Namespace) -> Answer:
    """Hours and dollars by state, patterns, and alerts."""
    from planner.session import idle_answer
    from reports.terminal import idle_text

    document = idle_answer(_session(options), options.by)
    return Answer(idle_text(document), document)


def plan(options: argparse.Namespace) -> Answer:
    """The output folder from what the store holds."""
    return _night(options, load_first=False)


def nightly_command(options: argparse.Namespace) -> Answer:
    """The sources first, then the output folder."""
    return _night(options, load_first=True)


def report(options: argparse.Namespace) -> Answer:
    """The report of a past night, rendered again from its files."""
    from planner import nightly

    text, document = nightly.render_again(options.folder)
    return Answer(text, document)


def demo(options: argparse.Namespace) -> Answer:
    """The whole nightly job on the bundled fleet; without --store in one that is thrown away."""
    from datetime import date

    from planner import nightly
    from planner.nightly import open_session

    out: Path = options.out
    made = None if options.store else tempfile.mkdtemp(prefix="loadfactor-demo-")
    store: Path = options.store or Path(str(made))
    try:
        with as_file(files("data.sample").joinpath("fleet")) as fleet:
            session = open_session(fleet / "loadfactor.toml", store, date.fromisoformat(DEMO_DAY))
            with closing(session.store):
                night = nightly.run_night(session, out, nightly.Timings(), load_first=True)
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    return _night_answer(night)


def backtest(options: argparse.Namespace) -> Answer:
    """What this planner and its rivals would have cost on unseen weeks."""
    from planner.backtest.files import Files, Rules, backtest_files
    from planner.forecast.policy import advise
    from reports.backtest import backtest_text

    result = backtest_files(
        Files(options.demand, options.prices, options.spot_availability),
        Rules(options.train_share, options.replan_weeks, options.max_delay_hours),
        advise,
    )
    for warning in result.warnings:
        log.warning("warning: %s", warning)
    document = result.as_json()
    code = WITH_WARNINGS if result.warnings else DONE
    return Answer(backtest_text(document), document, code)


def prices(options: argparse.Namespace) -> Answer:
    """The price book after its checks."""
    from planner.session import checked_prices

    return _frame_answer(checked_prices(_session(options)))


def commitments(options: argparse.Namespace) -> Answer:
    """What is owned, and how much of it is used."""
    from planner.session import commitments_answer
    from reports.terminal import commitments_text

    document = commitments_answer(_session(options))
    return Answer(commitments_text(document), document)


COMMANDS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "demo": demo,
    "init": init,
    "load": load,
    "fetch": fetch,
    "totals": totals,
    "check": check,
    "idle": idle,
    "plan": plan,
    "report": report,
    "solve": solve,
    "backtest": backtest,
    "prices": prices,
    "commitments": commitments,
    "nightly": nightly_command,
}


def _session(options: argparse.Namespace) -> Session:
    from planner.nightly import open_session

    session = open_session(options.config, options.store, options.date)
    options.closing.callback(session.store.close)
    return session


def _night(options: argparse.Namespace, load_first: bool) -> Answer:
    from planner import nightly

    timings = nightly.Timings()
    night = nightly.run_night(_session(options), options.out, timings, load_first=load_first)
    return _night_answer(night)


def _night_answer(night: Night) -> Answer:
    from planner import nightly

    for warning in night.warnings:
        log.warning("warning: %s", warning)
    text, document = nightly.short_summary(night)
    return Answer(text, document, night.exit_code)


def _log_deliveries(results: list[DeliveryResult]) -> None:
    for one in results:
        if one.reason:
            log.warning("%s: %s: %s", one.path, one.status, one.reason)
        for warning in one.warnings:
            log.warning("%s: warning: %s", one.path, warning)
        for old in one.replaced:
            log.info("%s: %s", one.path, old.sentence())


def _loading_code(results: list[DeliveryResult]) -> int:
    if any(str(one.status) == "rejected" for one in results):
        return FAILED
    return WITH_WARNINGS if any(one.warnings for one in results) else DONE


def _months(row: dict[str, Any]) -> str:
    periods = row["billing_periods"]
    return periods[0] if len(periods) == 1 else f"{periods[0]}..{periods[-1]}" if periods else ""


def _findings(frame: pd.DataFrame) -> Answer:
    answer = _frame_answer(frame)
    bad = set(frame["severity"]) & {"warning", "error"}
    return Answer(answer.text, answer.document, WITH_WARNINGS if bad else DONE)


def _frame_answer(frame: pd.DataFrame) -> Answer:
    from planner.nightly import plain_rows

    return _rows_answer({"rows": plain_rows(frame)})


def _rows_answer(document: dict[str, Any]) -> Answer:
    rows = document["rows"]
    return Answer(_table(rows, list(rows[0]) if rows else []), document)


def _table(rows: list[dict[str, Any]], columns: list[str]) -> str:
    from reports.terminal import table_text

    return table_text(rows, columns) if rows else "nothing to show"
