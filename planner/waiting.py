"""GPUs that queued jobs waited for, by class and hour: from the table of them, or from the jobs.

What no reading tells is not known, and is no 0. A job that still waits counts its GPUs from its
release for as long as it would have run: its work is in no observed hour. What began to run since
is in the observed hours already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from data.frames import records
from data.names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from planner.assemble import Need

    Array = npt.NDArray[np.float64]

RECENT = 672  # hours, by which what names no GPU family is divided between those of a class
_HOUR = pd.Timedelta(hours=1)
_EPOCH = pd.Timestamp(0, tz="UTC")


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """GPUs waited for.

    Attributes:
        gpus: by class id (class|family), GPUs by observed hour; NaN where there is no reading.
        notes: what is left out of no fault of the user's, one sentence each.
        warnings: what names no work of the fleet, one sentence each.
    """

    gpus: Mapping[str, Array]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def waiting_gpus(
    table: pd.DataFrame, jobs: pd.DataFrame, needs: Sequence[Need], covered: pd.DatetimeIndex
) -> Waiting:
    """The GPUs that queued jobs of each class waited for. Frames are WAITING and JOBS.

    The jobs serve classes of which the table has no row at all. A row without a GPU family is
    divided between the families of its class by what it needed in the last four weeks.
    """
    found: dict[str, Array] = {}
    strange: dict[tuple[str, str], float] = {}
    told = {str(name) for name in table["class"].unique()}
    notes: list[str] = []
    rows = [*_read(table, covered), *_queued(jobs, told, covered, notes)]
    divided: dict[tuple[str, str], dict[str, float]] = {}
    for name, family, hours, gpus in rows:
        if (name, family) not in divided:
            divided[name, family] = _shares(name, family, needs)
        shares = divided[name, family]
        if not shares:
            strange[name, family] = strange.get((name, family), 0.0) + float(gpus.sum())
        for need, share in shares.items():
            series = found.setdefault(need, np.full(len(covered), np.nan))
            series[hours] = np.nan_to_num(series[hours]) + gpus * share
    known = sorted({need.workload_class for need in needs})
    warnings = tuple(_strange(*key, strange[key], known) for key in sorted(strange))
    return Waiting(dict(sorted(found.items())), tuple(notes), warnings)


Reading = tuple[str, str, "npt.NDArray[np.intp]", "Array"]


def _read(table: pd.DataFrame, covered: pd.DatetimeIndex) -> Iterator[Reading]:
    """Class, family ('' for any), observed hours and GPUs of the table's rows."""
    plain = table.assign(gpu_family=table["gpu_family"].astype(object).fillna(""))
    keys = ["class", "gpu_family", "hour_start"]
    sums = plain.groupby(keys, sort=True)["gpus"].sum().reset_index()
    for key, part in sums.groupby(keys[:2], sort=True):
        name, family = (str(word) for word in key)
        hours = pd.DatetimeIndex(part["hour_start"]).as_unit(covered.unit)
        place = covered.get_indexer(hours)
        inside = place >= 0
        if inside.any():
            yield name, family, place[inside], part["gpus"].to_numpy(dtype=float)[inside]


def _queued(
    jobs: pd.DataFrame, told: set[str], covered: pd.DatetimeIndex, notes: list[str]
) -> Iterator[Reading]:
    """The same of jobs that still wait: each from its release for the hours it would have run."""
    queued = jobs[jobs["start"].isna() & ~jobs["class"].isin(told)]
    released = pd.to_datetime(queued["release"], utc=True, errors="coerce", format="ISO8601")
    is_number = queued["release"].str.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*").fillna(False)
    undated = int((is_number.astype(bool) | released.isna()).sum())
    if undated:
        notes.append(
            f"queued jobs whose release is no UTC time are not counted as waiting: {undated:,}"
        )
    observed = np.asarray((covered - _EPOCH) / _HOUR, dtype=float)
    for row, moment, number in zip(records(queued), released, is_number, strict=True):
        if number or pd.isna(moment) or not row["gpus"]:
            continue
        share = _overlap(observed, (moment - _EPOCH) / _HOUR, float(row["hours"]))
        hours = np.flatnonzero(share > 0)
        if len(hours):
            yield str(row["class"]), "", hours, float(row["gpus"]) * share[hours]


def _overlap(observed: Array, start: float, length: float) -> Array:
    """The share of each observed hour that lies within `length` hours from `start`.

    >>> _overlap(np.array([9.0, 10.0, 11.0, 12.0]), 10.5, 1.25).tolist()
    [0.0, 0.5, 0.75, 0.0]
    """
    begin = observed - start
    share = np.minimum(begin + 1, length) - np.maximum(begin, 0.0)
    return np.asarray(np.clip(share, 0.0, 1.0))


def _shares(name: str, family: str, needs: Sequence[Need]) -> dict[str, float]:
    """The share of each class id that is meant; nothing where no work of the fleet is."""
    own = [
        need for need in needs if need.workload_class == name and family in ("", need.gpu_family)
    ]
    for hours in (slice(-RECENT, None), slice(None)):
        sums = {need.id: float(need.total[hours].sum()) for need in own}
        if sum(sums.values()) > 0:
            return {one: gpus / sum(sums.values()) for one, gpus in sums.items()}
    return {need.id: 1 / len(own) for need in own}


def _strange(name: str, family: str, gpu_hours: float, known: Sequence[str]) -> str:
    what = f"{gpu_hours:,.0f} GPU-hours that jobs of class {name} waited for are left out: "
    if name in known:
        return f"{what}nothing of it ran on {family} in the window"
    remedy = f"; {nearest(name, known)}" if known else ""
    return f"{what}nothing of it ran in the window{remedy}"
