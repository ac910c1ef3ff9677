"""Every configured source into the store, one after the other; one that fails stops no other."""

from __future__ import annotations

import hashlib
import logging
import re
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from data.errors import ConfigError, LoadfactorError, Problem, ProviderError, UsageError
from data.names import nearest
from data.store import Status
from planner.answers import DONE, FAILED, WITH_WARNINGS
from planner.freshness import newest_hour, staleness
from planner.settings.sources import FilesSource, Pulled
from providers.fetch.contract import Fetched, FetchTask
from providers.registry import fetcher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.store import DeliveryResult
    from planner.session import Session
    from planner.settings.sources import Source

log = logging.getLogger("loadfactor")
LANDING = "landing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one source: what was pulled, or the error that ended it."""

    source: str
    kind: str
    fetched: Fetched | None = None
    error: LoadfactorError | None = None

    @property
    def deliveries(self) -> tuple[DeliveryResult, ...]:
        """What became of its deliveries."""
        return () if self.fetched is None else self.fetched.deliveries

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of the source as a whole."""
        return () if self.fetched is None else self.fetched.warnings

    def as_json(self) -> dict[str, Any]:
        """The outcome as `fetch --json` writes it."""
        if self.fetched is not None:
            return self.fetched.as_json()
        error = {} if self.error is None else self.error.as_json()
        return {"source": self.source, "kind": self.kind, "error": error}


def pull_sources(run: Session, only: Sequence[str] = (), force: bool = False) -> list[Outcome]:
    """What became of every source, in the order of the configuration; `only` names those wanted.

    Raises UsageError for a name that the configuration has not, ConfigError where it has no source.
    """
    known = run.settings.sources
    if not known:
        problem = Problem("sources", "none is configured", "write a section [sources.NAME]")
        raise ConfigError("there is nothing to fetch", [problem])
    unknown = [name for name in dict.fromkeys(only) if name not in known]
    if unknown:
        problems = [Problem(name, "no such source", nearest(name, list(known))) for name in unknown]
        raise UsageError("--only names what the configuration has not", problems)
    wanted = {name: source for name, source in known.items() if not only or name in only}
    return [_pull(run, name, source, force) for name, source in wanted.items()]


def code_of(outcomes: Sequence[Outcome]) -> int:
    """The exit code that the outcomes deserve."""
    results = [one for outcome in outcomes for one in outcome.deliveries]
    if any(outcome.error for outcome in outcomes):
        return FAILED
    if any(one.status == Status.REJECTED for one in results):
        return FAILED
    told = any(outcome.warnings for outcome in outcomes) or any(one.warnings for one in results)
    return WITH_WARNINGS if told else DONE


def row_of(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a line of a table for people."""
    counts = {
        str(status): sum(one.status == status for one in outcome.deliveries) for status in Status
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    fetched = outcome.fetched
    return {
        "source": outcome.source,
        "kind": outcome.kind,
        "objects": "" if fetched is None else fetched.objects,
        "bytes": "" if fetched is None else fetched.bytes,
        "deliveries": told or ("failed" if outcome.error else "none"),
    }


def _pull(run: Session, name: str, source: Source, force: bool) -> Outcome:
    log.info("fetching %s (%s) ...", name, source.kind)
    try:
        return Outcome(name, source.kind, _aged(run, source, _fetched(run, name, source, force)))
    except UsageError:
        raise
    except LoadfactorError as error:
        log.debug("traceback of the error", exc_info=error)
        return Outcome(name, source.kind, error=error)
    except Exception as error:  # whatever one source ends in, the others are still fetched
        log.debug("traceback of %s\n%s", type(error).__name__, _frames(error))
        return Outcome(name, source.kind, error=_unforeseen(name, error))


def _unforeseen(name: str, error: Exception) -> ProviderError:
    """An error that nothing foresaw as one of ours, without its words: they may quote a secret."""
    what = f"it ended in {type(error).__name__}, which is not foreseen"
    remedy = (
        f"look at what it delivers and at its section; `fetch --only {name} --verbose` says where "
        "it ended: report that. What was loaded of it stays"
    )
    return ProviderError("the source cannot be read", [Problem(f"sources.{name}", what, remedy)])


def _frames(error: BaseException) -> str:
    """Where the error was raised, and what it was raised from, without any message."""
    told = "".join(traceback.format_tb(error.__traceback__))
    former = error.__cause__ or error.__context__
    if former is None or former is error:
        return told
    return f"{_frames(former)}then {type(error).__name__}\n{told}"


def _fetched(run: Session, name: str, source: Source, force: bool) -> Fetched:
    if isinstance(source, FilesSource):
        from providers.files.loading import load

        paths = [run.settings.path(text) for text in source.paths]
        results = load(paths, run.store, dataset=source.dataset, force=force)
        return Fetched(name, source.kind, deliveries=tuple(results))
    if not isinstance(source, Pulled):
        text = f"kind {source.kind} is not fetched by this version, load its exports"
        return Fetched(name, source.kind, warnings=(text,))
    if source.billing is None:
        return Fetched(name, source.kind, warnings=("it names no billing export to pull",))
    task = FetchTask(
        name=name,
        options=source.model_dump(),
        store=run.store,
        landing=landing_of(run.store.path, name),
        as_of=run.as_of,
        force=force,
    )
    return fetcher(source.kind)(task)


def landing_of(store: Path, name: str) -> Path:
    """The folder that a source's exports are downloaded to.

    >>> from pathlib import PurePosixPath
    >>> str(landing_of(PurePosixPath("store"), "aws-prod"))
    'store/landing/aws-prod'
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
    if safe != name:
        safe += f"-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return store / LANDING / safe


def _aged(run: Session, source: Source, fetched: Fetched) -> Fetched:
    """What was pulled, with a warning where the newest hour of its bill is too old."""
    if not isinstance(source, Pulled):
        return fetched
    loaded = {one.delivery_id for one in fetched.deliveries if one.status != Status.REJECTED}
    run.store.refresh()
    newest = newest_hour(run.store, loaded)
    if newest is None:
        return fetched
    told = staleness(newest, run.as_of, source.max_age_days)
    return fetched if told is None else replace(fetched, warnings=(*fetched.warnings, told))
