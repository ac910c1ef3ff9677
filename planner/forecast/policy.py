"""How many GPUs to reserve now, knowing the past and that more can be bought at the next step.

What is bought cannot be given back, and what is not bought yet can be bought later. So a GPU is
reserved only where it pays both by the recent level of demand and, as far as demand has been seen
to fall, by the worst view of its past. What is held and stays held counts in full.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.forecast.inputs import Advice
from planner.forecast.known import FEWEST_HOURS, counted_gpus, known_of
from planner.forecast.scenarios import quick_interval
from planner.forecast.worth import best_instances, price_per_useful_hour, worth_of

if TYPE_CHECKING:
    from planner.forecast.inputs import History, Interval, Terms
    from planner.forecast.worth import Worth

_RANGE = 0.8  # the share of coming hours that the range of the advice is to hold
# The share of the scenarios that it takes for that: demand that never fell strays less than its
# scenarios, and demand that fell often strays more. Set so that 75 to 85% of the hours of public
# traces lie within, pooled and for most kinds of demand.
_CALM_RANGE, _MORE_RANGE = 0.74, 0.14


def advise(history: History, terms: Terms) -> Advice:
    """The GPUs to reserve at the end of `history`, on top of what is held, and why so many."""
    known = known_of(history)
    if len(known.firm) < FEWEST_HOURS:
        return Advice(0, "Buy nothing yet: too little demand is known.", known.warnings)
    if price_per_useful_hour(terms) >= terms.on_demand:
        return Advice(0, _does_not_pay(terms), known.warnings)
    worth = worth_of(history, known, terms)
    held = held_on(terms, history.next_hour)
    instances = best_instances(worth, held)
    return Advice(
        gpus=instances * terms.gpus_per_instance,
        reason=_reason(worth, instances, held),
        warnings=known.warnings,
        interval=_range_of(history, min(terms.term_hours, known.span), worth.doubt),
    )


def _range_of(history: History, hours: int, doubt: float) -> Interval | None:
    """The range of the total demand of the next `hours`; None where the history is too short."""
    found = quick_interval(history, hours, _CALM_RANGE + _MORE_RANGE * doubt)
    return None if found is None else replace(found, share=_RANGE)


def held_on(terms: Terms, hour: int) -> float:
    """Reserved GPUs that count as held until the next planning step.

    One that ends before it leaves a gap, on demand, if it is not renewed now, and is paid for
    twice until its end if it is. Waiting is the cheaper where it lasts for the share
    1 - reserved / on demand of the time.
    """
    lasting = hour + terms.replan_hours * (1 - terms.reserved / terms.on_demand)
    return sum(
        one.gpus for one in terms.held if one.from_hour <= hour and one.until_hour >= lasting
    )


def _does_not_pay(terms: Terms) -> str:
    if terms.reserved >= terms.on_demand:
        return "Buy nothing: a reserved GPU-hour costs no less than one on demand."
    return f"Buy nothing: the need ends in {terms.hours_left} hours, before a reservation pays."


def _reason(worth: Worth, instances: int, held: float) -> str:
    size, asked = worth.terms.gpus_per_instance, worth.asked()
    after = worth.of_next(held + instances * size)
    if instances:
        last = worth.of_next(held + (instances - 1) * size)
        return (
            f"The last GPU saves {last:.2f} USD an hour and must save {asked:.2f}; "
            f"the next would save {after:.2f}."
        )
    owned = counted_gpus(held)
    if held and worth.of_next(held - size) <= asked:
        return (
            f"Let part of the {owned} owned expire: the last one saves "
            f"{worth.of_next(held - size):.2f} USD an hour and must save {asked:.2f}."
        )
    if held:
        return (
            f"The {owned} owned {'is' if owned == '1 GPU' else 'are'} enough: one more would save "
            f"{after:.2f} USD an hour and must save {asked:.2f}."
        )
    return (
        f"Buy nothing yet: the first GPU would save {after:.2f} USD an hour and must save "
        f"{asked:.2f}; it can be bought at the next step."
    )
