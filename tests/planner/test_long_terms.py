"""Terms of more than a year are on offer only where demand has earned them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.forecast.inputs import Advice, History, Terms
from planner.ladder import Pool, Rung
from planner.long_terms import weighed
from planner.supply import Supply, SupplyOffer, Term

ONE = Term("1y", "monthly", 2.6, 0.0, 8760)
THREE = Term("3y", "monthly", 1.7, 0.0, 26280)
HOURS = 60 * 24


def offer(*terms: Term) -> SupplyOffer:
    return SupplyOffer(
        "aws/r/p5", "aws", "r", "p5", "H100", 8, 3.9, 1.6, terms, None, from_bill=False
    )


def rung(firm, waiting=None) -> Rung:
    firm = np.asarray(firm, dtype=float)[:, None]
    waits = np.zeros_like(firm) if waiting is None else np.asarray(waiting, dtype=float)[:, None]
    past = History(firm, waits, ("training",))
    terms = Terms(3.9, 2.6, 1.6, 0.9, gpus_per_instance=8)
    return Rung(Pool("H100", "aws", (), ("aws/r/p5",)), past, terms, Advice(0, ""), 16.0, 0.0)


def terms_left(firm, waiting=None, terms=(ONE, THREE)):
    supply = weighed(Supply({"aws/r/p5": offer(*terms)}, ()), [rung(firm, waiting)], 0.2)
    return [term.name for term in supply.offers["aws/r/p5"].terms], supply.notes


def test_without_a_long_term_nothing_is_weighed_and_nothing_said():
    assert terms_left(np.full(HOURS, 16.0), terms=(ONE,)) == (["1y"], ())


def test_a_steady_need_may_take_the_long_term():
    """16 GPUs in every hour: three years at 1.70 cost 35% less than a year at 2.60."""
    left, notes = terms_left(np.full(HOURS, 16.0))
    assert left == ["1y", "3y"]
    assert "for 3 years" in notes[0]


@pytest.mark.parametrize("firm", [np.zeros(HOURS), np.repeat([16.0, 0.0], HOURS // 2)])
def test_no_need_or_one_that_ended_keeps_no_long_term(firm):
    left, notes = terms_left(firm)
    assert left == ["1y"]
    assert "buy nothing" in notes[0]


def test_work_that_may_use_spot_earns_no_long_term():
    """A useful spot GPU-hour is at hand for it; nothing is firm."""
    left, _ = terms_left(np.zeros(HOURS), waiting=np.full(HOURS, 16.0))
    assert left == ["1y"]
