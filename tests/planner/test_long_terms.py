"""Terms of more than a year are on offer only where demand has earned them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.forecast.inputs import Advice, History, Terms
from planner.horizon import horizon_of
from planner.ladder import Pool, Rung
from planner.long_terms import weighed
from planner.reasons import Basis, reasons
from planner.supply import Supply, SupplyOffer, Term, Withdrawn, offers_from
from tests import bills
from tests.planner.test_waterfall import ON_DEMAND, work_out

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


def test_a_term_that_is_withdrawn_is_told_with_its_reason():
    """Nothing is needed, so no term can pay; 16 GPUs in every hour earn theirs."""
    supply = weighed(Supply({"aws/r/p5": offer(ONE, THREE)}, ()), [rung(np.zeros(HOURS))], 0.2)
    (one,) = supply.withdrawn
    assert (one.offer, one.term) == ("aws/r/p5", THREE)
    assert one.why == (
        "a term of 3 years is not offered now, since over 40 ways in which its firm demand may "
        "come no layer of the demand pays for a reservation"
    )
    kept = weighed(Supply({"aws/r/p5": offer(ONE, THREE)}, ()), [rung(np.full(HOURS, 16.0))], 0.2)
    assert kept.withdrawn == ()


def test_a_withdrawn_term_stands_among_what_was_not_chosen():
    """A node of 8 H100s at $6.88 an hour on demand; three years at $2.15 are 31.25% of that."""
    fleet = bills.fleet(bills.node_hours("i-busy", range(18)))
    prices = bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30))
    supply = Supply(offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"]), ())
    three = Term("reserved_3y", "monthly", 2.15, 0.0, 26280)
    held_back = Withdrawn("aws/us-east-1/p5.48xlarge", three, "a term of 3 years is not offered")
    window = bills.window()
    basis = Basis(
        work_out(fleet, prices), replace(supply, withdrawn=(held_back,)),
        horizon_of(window.end, window.hours), (),
    )  # fmt: skip
    (one,) = (one for one in reasons(basis, None).options if one.term == "reserved_3y/monthly")
    assert (one.kind, one.count, one.why) == ("reserved", 0.0, "a term of 3 years is not offered")
    assert one.usd_per_gpu_hour == 2.15
    assert one.break_even_share == pytest.approx(0.3125)


@pytest.mark.parametrize("firm", [np.zeros(HOURS), np.repeat([16.0, 0.0], HOURS // 2)])
def test_no_need_or_one_that_ended_keeps_no_long_term(firm):
    left, notes = terms_left(firm)
    assert left == ["1y"]
    assert "buy nothing" in notes[0]


def test_work_that_may_use_spot_earns_no_long_term():
    """A useful spot GPU-hour is at hand for it; nothing is firm."""
    left, _ = terms_left(np.zeros(HOURS), waiting=np.full(HOURS, 16.0))
    assert left == ["1y"]
