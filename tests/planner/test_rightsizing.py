"""Recommendations share out the steps of the waterfall to the cent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.horizon import horizon_of
from planner.purchases import purchases
from planner.rightsizing import Advice, recommend, share_out, to_cents
from planner.supply import Owned, Supply, offers_from
from tests import bills
from tests.planner.test_waterfall import IDLE_RESERVED, ON_DEMAND, committed, work_out

if TYPE_CHECKING:
    import pandas as pd

    from planner.waterfall import Waterfall

NOW = datetime(2026, 9, 2, tzinfo=UTC)


def advise(fleet: pd.DataFrame, prices: pd.DataFrame, made: Waterfall) -> pd.DataFrame:
    bill = bills.as_numbers(fleet)
    supply = Supply(offers_from(prices, bills.shapes(), bill, ["1y"]), ())
    assert horizon_of(bills.window().end, 24).hours == 8760
    return recommend(bill, made, Advice(24, supply, "USD", NOW, NOW))


def mixed_fleet() -> pd.DataFrame:
    return bills.fleet(
        bills.node_hours("i-busy", range(24)),
        bills.node_hours("i-parked", range(24), needed=0, state="free", stoppable=True),
        bills.node_hours("i-part", range(24), gpus=6, workload_class="inference"),
        bills.node_hours(
            "i-part", range(24), gpus=2, needed=0, state="free", workload_class="inference"
        ),
        bills.node_hours("i-held", range(24), **IDLE_RESERVED),
    )


def test_the_rows_add_up_to_todays_bill_less_the_plan() -> None:
    fleet = mixed_fleet()
    prices = bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30))
    made = work_out(fleet, prices, bills.commitments(committed(400)))
    rows = advise(fleet, prices, made)
    saved = sum(rows["saving_per_month"], Decimal(0))
    # By hand, a month of 730 h: today 3 nodes at 6.88 and one reserved at 4.00 = 8 GPUs each.
    today = Decimal(8 * 730) * (3 * Decimal("6.88") + 4)
    # Needed: 8 + 6 GPUs. 8 fit on the owned node (4.00 sunk), 6 more: a node reserved at 4.30
    # costs 8 x 4.30 = 34.40 an hour against 6 x 6.88 = 41.28 on demand.
    plan = Decimal(8 * 730) * (4 + Decimal("4.30"))
    assert saved == pytest.approx(today - plan, abs=Decimal("0.03"))
    assert list(rows["rank"]) == list(range(1, len(rows) + 1))
    assert list(rows["saving_per_month"]) == sorted(rows["saving_per_month"], reverse=True)
    assert set(rows["kind"]) == {
        "release_idle", "rightsize", "use_idle_commitment", "buy_reserved",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        (("owned", "owned"), "yes"),
        (("reserved", "reserved"), "no"),  # of AWS: a discount, the machine must be requested
        (("owned", "savings_plan"), "no"),
    ],
)
def test_idle_commitments_are_assured_where_all_of_them_keep_machines(kinds, word: str) -> None:
    fleet, prices = mixed_fleet(), bills.offers(ON_DEMAND)
    made = work_out(fleet, prices, bills.commitments(committed(400)))
    offers = offers_from(prices, bills.shapes(), bills.as_numbers(fleet), ["1y"])
    owned = tuple(Owned(name, next(iter(offers)), 8.0, 24, 0.0, 0.0) for name in ("a", "b"))
    advice = Advice(
        24, Supply(offers, owned), "USD", NOW, NOW, dict(zip(("a", "b"), kinds, strict=True))
    )
    rows = recommend(bills.as_numbers(fleet), made, advice).set_index("kind")
    assert set(rows.loc[["use_idle_commitment"], "capacity_assured"]) == {word}


def test_a_release_names_its_node_and_its_dollars() -> None:
    fleet = mixed_fleet()
    prices = bills.offers(ON_DEMAND)
    rows = advise(fleet, prices, work_out(fleet, prices)).set_index("kind")
    release = rows.loc["release_idle"]
    assert release["resource"] == "i-parked"
    assert release["saving_per_month"] == to_cents(8 * 6.88 * 730)
    assert release["cash_saving_per_month"] == release["saving_per_month"]


def test_a_purchase_states_its_liability_and_break_even() -> None:
    fleet = bills.fleet(bills.node_hours("i-busy", range(18)))
    prices = bills.offers(ON_DEMAND, bills.price("reserved_1y", 4.30))
    made = work_out(fleet, prices)
    bill = bills.as_numbers(fleet)
    bought = purchases(made.plan, Supply(offers_from(prices, bills.shapes(), bill, ["1y"]), ()))
    assert len(bought) == 1
    assert bought[0].total_commitment == pytest.approx(8 * 4.30 * 8760)
    assert bought[0].break_even_share == pytest.approx(4.30 / 6.88)
    assert bought[0].expected_share == pytest.approx(18 / 24)
    assert bought[0].upfront == 0


def test_ids_do_not_depend_on_amounts() -> None:
    prices = bills.offers(ON_DEMAND)
    ids = []
    for hours in (20, 24):
        parked = bills.node_hours("i-1", range(hours), needed=0, state="free", stoppable=True)
        fleet = bills.fleet(parked, bills.node_hours("i-2", range(24)))
        ids.append(list(advise(fleet, prices, work_out(fleet, prices))["id"]))
    assert ids[0] == ids[1]


@given(
    total=st.floats(-1e9, 1e9, allow_nan=False),
    weights=st.lists(st.floats(0.001, 1e6), min_size=1, max_size=30),
)
@settings(max_examples=200, deadline=None)
def test_shares_add_up_to_the_total_in_cents(total: float, weights: list[float]) -> None:
    parts = share_out(total, weights)
    assert sum(parts, Decimal(0)) == to_cents(total)
    assert all(part == part.quantize(Decimal("0.01")) for part in parts)
