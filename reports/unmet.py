"""What the observed hours do not show of demand, in the words of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports import numbers

if TYPE_CHECKING:
    from data.reasons import Reasons
    from data.unmet import UnmetDemand

_SAME = 0.05  # share of what waited, within which the plan is said to need as much more


def view(reasons: Reasons | None) -> dict[str, Any] | None:
    """Everything the section shows; None where nothing queued and nothing was full."""
    rows = reasons.unmet if reasons else ()
    if not rows:
        return None
    return {"rows": rows, "sentences": [sentence(one) for one in rows]}


def sentence(one: UnmetDemand) -> str:
    """What was full or queued of a class, and what the plan made of it.

    >>> from data.unmet import UnmetDemand
    >>> sentence(UnmetDemand("train", "H100", 720, 90, 60, ("the quota of aws us-east-1 (64 GPUs)",
    ...                      ), 0, 0.0, 40.0, 3.0))
    'train on H100: its place was full in 90 of 720 hours (the quota of aws us-east-1 (64 GPUs)); \
60 of them count as lower bounds. The planned year needs 3 GPUs more for it.'
    """
    parts = []
    if one.full_hours:
        where = "; ".join(one.full_places)
        bounds = (
            "all of them count as lower bounds"
            if one.censored_hours == one.full_hours
            else f"{_none(one.censored_hours)} of them count as lower bounds"
        )
        parts.append(
            f"its place was full in {one.full_hours:,} of {one.hours:,} hours ({where}); {bounds}"
        )
    if one.waited_hours:
        parts.append(
            f"its jobs waited in {one.waited_hours:,} of {one.hours:,} hours, for "
            f"{numbers.gpu_hours(one.waiting_gpu_hours)}, which count as demand"
        )
    text = f"{one.workload_class} on {one.gpu_family}: {'; '.join(parts)}."
    if one.planned_more is None:
        return f"{text} The history is too short to plan ahead, so the plan leaves it out."
    return f"{text} {_planned_words(one, one.planned_more)}"


def _planned_words(one: UnmetDemand, more: float) -> str:
    """What the planned year needs with it, and how much of that is what waited.

    >>> from data.unmet import UnmetDemand
    >>> row = UnmetDemand("train", "H100", 720, 0, 0, (), 700, 8400.0, 24.0, 14.8, 35.7, 12.0)
    >>> _planned_words(row, 14.8)
    'The planned year needs 35.7 GPUs with it and 20.9 without: 12 GPUs waited on the mean of the \
last four weeks; the other 2.8 come from the forecast, which follows both together otherwise than \
what ran alone.'
    >>> _planned_words(UnmetDemand("t", "H", 9, 0, 0, (), 9, 9.0, 4.0, 3.0, 7.0, 3.02), 3.0)
    'The planned year needs 7 GPUs with it and 4 without: 3.02 GPUs waited on the mean of the last \
four weeks.'
    """
    if round(more, 1) == 0:
        return "It changes the planned year's need by less than a tenth of a GPU."
    if one.planned_gpus is None:
        word = "more" if more > 0 else "fewer"
        return f"The planned year needs {_gpus(abs(more))} {word} for it."
    text = (
        f"The planned year needs {_gpus(one.planned_gpus)} with it and "
        f"{numbers.quantity(one.planned_gpus - more)} without"
    )
    if not one.recent_waiting:
        return f"{text}."
    text = f"{text}: {_gpus(one.recent_waiting)} waited on the mean of the last four weeks"
    apart = more - one.recent_waiting
    if abs(apart) < _SAME * max(one.recent_waiting, 1.0):
        return f"{text}."
    return f"{text}{_apart_words(apart, one.censored_hours > 0)}."


def _apart_words(apart: float, has_bounds: bool) -> str:
    """Why the planned year needs another number more than waited of late."""
    gpus = numbers.quantity(abs(apart))
    if apart < 0:
        return f", of which the forecast takes {gpus} not to last"
    bounds = ", and counts the lower bounds" if has_bounds else ""
    return (
        f"; the other {gpus} come from the forecast, which follows both together otherwise than "
        f"what ran alone{bounds}"
    )


def _gpus(count: float) -> str:
    text = numbers.quantity(count)
    return f"{text} {'GPU' if text == '1' else 'GPUs'}"


def _none(count: int) -> str:
    return f"{count:,}" if count else "none"
