"""What the observed hours do not show of demand, in the words of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports import numbers

if TYPE_CHECKING:
    from data.reasons import Reasons
    from data.unmet import UnmetDemand


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
    if round(one.planned_more, 1) == 0:
        return f"{text} It changes the planned year's need by less than a tenth of a GPU."
    gpus = numbers.quantity(abs(one.planned_more))
    unit = "GPU" if gpus == "1" else "GPUs"
    more = "more" if one.planned_more > 0 else "fewer"
    return f"{text} The planned year needs {gpus} {unit} {more} for it."


def _none(count: int) -> str:
    return f"{count:,}" if count else "none"
