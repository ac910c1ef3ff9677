"""The last night's advice: what of it still stands to be bought, and what changed since and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.names import term_words
from data.reasons import LineChange, SinceLastNight
from planner.outcome import Commitment, Plan, ReservedCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from data.plan import Plan as NightPlan
    from data.reasons import OwnedPart, PlanOption, Reasons

COMMITTED = ("reserved", "savings_plan")
_SAME_DEMAND = 0.01  # share by which need may differ and count as the same
_SAME_COUNT = 0.005  # instances, or USD an hour: what a reader would see as the same
_SAME_PRICE = 5e-5  # USD per GPU-hour


def target(last: Reasons, owned: Sequence[OwnedPart]) -> Plan:
    """The last night's purchases, less what was bought since: what the plan stays near to."""
    fresh = _bought_since(last, owned)
    reserved, spends = [], []
    for one in last.options:
        if one.count <= 0 or one.kind not in COMMITTED:
            continue
        if one.kind == "savings_plan":
            spent = sum(part.usd_per_hour for part in fresh if part.cloud == one.cloud)
            if one.count > spent:
                spends.append(Commitment(one.cloud, one.count - spent))
            continue
        place = (one.cloud, one.region, one.name)
        there = sum(
            part.instances for part in fresh if (part.cloud, part.region, part.name) == place
        )
        if (left := round(one.count - there)) > 0:
            reserved.append(ReservedCount("/".join(map(str, place)), one.term, left))
    return Plan(tuple(sorted(reserved)), tuple(sorted(spends)))


def since_last_night(
    date: str,
    tolerance: float,
    last: Reasons,
    now: Reasons,
    restated: Set[str] = frozenset(),
) -> SinceLastNight:
    """Lines to buy that are as advised on that night, and the others with the reason.

    `restated` are the clouds whose bill was restated since, which may be the reason too.
    """
    before = {one.key: one for one in last.options if one.kind in COMMITTED}
    today = {one.key: one for one in now.options if one.kind in COMMITTED}
    unchanged, changes = 0, []
    for key in sorted({*before, *today}):
        old, new = before.get(key), today.get(key)
        counts = [0.0 if one is None else one.count for one in (old, new)]
        if abs(counts[0] - counts[1]) <= _SAME_COUNT:
            unchanged += counts[0] > 0
            continue
        one = new or old
        assert one is not None
        told = _owned_change(one, last.owned, now.owned)
        if one.cloud in restated:
            told.append(f"data: the bill of {one.cloud} was restated")
        why = _why(old, new, told)
        changes.append(LineChange(line_name(one), _amount(old), _amount(new), why))
    return SinceLastNight(date, tolerance, unchanged, tuple(changes))


def line_name(one: PlanOption) -> str:
    """A line to buy in words."""
    if one.kind == "savings_plan":
        return f"{one.cloud} savings plan, 1 year"
    return f"{one.name} in {one.region}, {term_words(one.term)}"


def same_fleet(last: NightPlan, accounts: Iterable[str]) -> bool:
    """Whether a night may be of the same fleet: it has pools in none of its accounts otherwise."""
    theirs = {change.account for change in last.changes} - {""}
    ours = set(accounts) - {""}
    return not theirs or not ours or bool(theirs & ours)


def _bought_since(last: Reasons, owned: Sequence[OwnedPart]) -> list[OwnedPart]:
    known = {part.id for part in last.owned}
    return [part for part in owned if part.id not in known]


def _amount(one: PlanOption | None) -> str:
    if one is None or one.count <= 0:
        return "none"
    return f"${one.count:,.2f} an hour" if one.kind == "savings_plan" else f"{one.count:,.0f}"


def _owned_change(
    one: PlanOption, before: Sequence[OwnedPart], now: Sequence[OwnedPart]
) -> list[str]:
    """What began and what ended of the commitments that serve the same hours."""

    def near(parts: Sequence[OwnedPart]) -> set[str]:
        return {
            part.id
            for part in parts
            if part.cloud == one.cloud
            and (one.region in (None, part.region) or part.usd_per_hour > 0)
        }

    old, new = near(before), near(now)
    words = []
    if begun := sorted(new - old):
        words.append(f"commitments: {', '.join(begun)} began")
    if ended := sorted(old - new):
        words.append(f"commitments: {', '.join(ended)} ended")
    return words


def _why(old: PlanOption | None, new: PlanOption | None, owned: list[str]) -> str:
    if new is None:
        return "; ".join([*owned, "price: it is not sold any more, or no class may use it"])
    if old is None:
        return "; ".join([*owned, "price: it was not sold then, or no class might use it"])
    words = list(owned)
    for label, was, now in (
        ("its price", old.usd_per_gpu_hour, new.usd_per_gpu_hour),
        ("on demand", old.hourly_usd_per_gpu_hour, new.hourly_usd_per_gpu_hour),
    ):
        if was is None or now is None:
            if was is not now:
                words.append(f"price: {label} is {'gone' if now is None else 'new'}")
        elif abs(was - now) > _SAME_PRICE:
            words.append(f"price: {label} went from ${was:.4f} to ${now:.4f} a GPU-hour")
    least = _SAME_DEMAND * max(old.needed_gpus, new.needed_gpus)
    if abs(new.needed_gpus - old.needed_gpus) > least:
        words.append(
            f"demand: its classes need {new.needed_gpus:,.1f} GPUs on average, "
            f"not {old.needed_gpus:,.1f}"
        )
    if words:
        return "; ".join(words)
    return "demand: other hours of the day, or other classes; its mean differs by less than 1%"
