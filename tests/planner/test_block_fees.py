"""Capacity Block fees: spread over the block's hours where its dates are known, told where not."""

from __future__ import annotations

from decimal import Decimal as D
from types import SimpleNamespace

from data import money
from planner.owned import owned_from
from planner.supply import SupplyOffer
from tests import bills
from tests import fleet as t

ARN = "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-1"


def fee(cost: str, day: int = 0, **more) -> dict:
    """The fee of a block, or with `charge_type` its refund: a row of its start day."""
    row = {"gpus": 0, "gpu_count": None, "instance_hours": None, "charge_type": "fee",
           "purchase_option": "capacity_block", "effective_cost": D(cost)}  # fmt: skip
    return t.charge(None, start=24 * day, hours=24, **(row | more))


def run(resource: str, start: float, hours: float = 1, **more) -> dict:
    """An hour of a machine in the block: no cost of its own."""
    row = {"purchase_option": "capacity_block", "capacity_reservation_id": ARN,
           "effective_cost": D(0)}  # fmt: skip
    return t.charge(resource, start=start, hours=hours, **(row | more))


def block(**more) -> dict:
    """Two nodes from 11:30 of the first day to 11:30 of the second: 48 instance-hours."""
    row = {"id": "cr-1", "kind": "capacity_block", "region": "us-east-1", "count": 2,
           "start": t.hour(11.5), "end": t.hour(35.5)}  # fmt: skip
    return row | more


def running(resource: str, hours: list[float], **more) -> list[dict]:
    """The machine from 11:30 on, in half an hour of the first hour and in the whole ones after."""
    return [run(resource, at, 0.5 if at % 1 else 1, **more) for at in hours]


FIRST_DAY = [11.5, *range(12, 24)]


def test_a_fee_net_of_its_refund_is_spread_over_the_block_and_the_rest_is_unused():
    # Net fee 2000 - 80 = 1920 over 2 x 24 instance-hours: 40 an hour. In the first day the block
    # lasts 12.5 hours = 25 instance-hours = 1000: i-1 runs 12.5 hours = 500, i-2 two = 80.
    bill = [fee("2000"), fee("-80", charge_type="refund")]
    bill += running("i-1", FIRST_DAY) + running("i-2", [14, 15])
    found = t.fleet(bill, [], 24, commitments=t.owned(block()))
    costs = found.hours.groupby("instance_id")["cost"].agg(money.total)
    assert costs.to_dict() == {"i-1": 500, "i-2": 80, "commitment:cr-1": 420}
    assert set(found.hours["commitment_id"]) == {"cr-1"}
    assert set(found.hours["purchase_option"]) == {"capacity_block"}
    assert found.hours["committed_until"].dt.day.eq(3).all()
    # 10.5 instance-hours of 8 GPUs stood unused.
    unused = t.checks_of(found)["unused_capacity"]
    assert (unused.count, unused.amount) == (84, 420)
    assert found.unspread == ()
    first = found.hours[found.hours["hour_start"] == t.hour(11)]
    assert money.total(first["cost"]) == 40  # half an hour of two nodes


def test_a_block_that_began_before_the_window_costs_its_hours_in_it():
    # The second day holds 11.5 of the 24 hours: 23 of 48 instance-hours = 920 of 1920.
    bill = [fee("1920"), *running("i-1", [*range(24, 35)]), run("i-1", 35, 0.5)]
    found = t.build(
        t.billing(bill), t.utilization([]), t.Policy(shapes=t.SHAPES), t.window(24, 24),
        t.owned(block()),
    )  # fmt: skip
    assert t.by_state(found.hours, "cost") == {"unknown": 460, "free": 460}


def test_blocks_of_one_day_and_type_share_their_fees_by_size_and_stated_rates():
    # 48 instance-hours at 40 and 24 at 50 = 1920 + 1200 in two rows that name no block.
    other = block(id="cr-2", count=1, usd_per_instance_hour=D(50))
    owned = t.owned(block(usd_per_instance_hour=D(40)), other)
    bill = [fee("1920"), fee("1200"), *running("i-1", FIRST_DAY)]
    other_arn = ARN.replace("cr-1", "cr-2")
    bill += running("i-9", FIRST_DAY, capacity_reservation_id=other_arn)
    found = t.fleet(bill, [], 24, commitments=owned)
    costs = found.hours.groupby("instance_id")["cost"].agg(money.total).round(6)
    assert costs.to_dict() == {"i-1": 500, "i-9": 625, "commitment:cr-1": 500}


def test_machines_at_no_cost_inside_a_known_block_are_of_it_in_exports_without_its_columns():
    plain = {"purchase_option": "on_demand", "capacity_reservation_id": None}
    bill = [fee("1920"), *running("i-1", FIRST_DAY, **plain), run("i-3", 9, **plain)]
    bill += [
        t.charge("i-4", start=12),
        run("i-5", 13, capacity_reservation_id=None),
        run("i-6", 13, **plain),
    ]
    found = t.fleet(bill, [], 24, commitments=t.owned(block()))
    options = found.hours.groupby("instance_id")["purchase_option"].unique().map(list).to_dict()
    assert options == {
        "i-1": ["capacity_block"],
        "i-3": ["on_demand"],  # before the block began
        "i-4": ["on_demand"],  # it is paid for by the hour
        "i-5": ["capacity_block"],
        "i-6": ["capacity_block"],
        "commitment:cr-1": ["capacity_block"],
    }
    # At 13 three nodes ran in a block of two: they share its 80 an hour.
    three = found.hours[found.hours["hour_start"] == t.hour(13)]
    assert sorted(three["cost"].round(2)) == [D("26.67")] * 3
    assert money.total(three["cost"]).quantize(D("1e-6")) == 80


def test_a_fee_of_an_unknown_block_stays_on_its_day_and_its_hours_never_look_free():
    bill = [fee("2000"), fee("-80", charge_type="refund"), run("i-1", 12), t.charge("i-2")]
    elsewhere = block(region="us-east-2", id="cr-2")
    owned = t.owned(elsewhere, block(start=t.hour(-1), id="cr-3"))
    found = t.fleet(bill, [], 24, commitments=owned)
    (left,) = found.unspread
    assert (left.amount, left.count, left.currency) == (1920, 2, "USD")
    told = t.checks_of(found)
    assert told["capacity_block_not_spread"].severity == "warning"
    assert told["capacity_block_not_spread"].amount == 1920
    assert told["no_price"].count == 8
    blocked = found.hours[found.hours["instance_id"] == "i-1"]
    assert blocked["cost"].isna().all()
    assert blocked["commitment_id"].tolist() == [ARN]


def test_a_fee_that_was_given_back_is_none_and_the_hours_without_a_fee_have_no_known_cost():
    bill = [fee("2000"), fee("-2000", charge_type="refund"), fee("700", day=3)]
    found = t.fleet([*bill, run("i-1", 12), t.charge("i-2")], [], 24, commitments=t.owned(block()))
    assert found.unspread == ()  # of the window: the other is of a later day
    costs = found.hours.set_index("instance_id")["cost"]
    assert (costs["i-1"], costs["i-2"]) == (None, D("98.32"))
    assert t.checks_of(found)["covered_without_fee"].count == 8


def test_a_block_without_dates_is_capacity_of_today_and_of_no_day_to_come():
    rows = bills.node_hours(
        "i-1", range(24), purchase_option="capacity_block", commitment_id="cr-9"
    )
    bill = bills.as_numbers(bills.fleet(rows)).assign(cost=float("nan"))
    offer = SupplyOffer("aws/us-east-1/p5.48xlarge", "aws", "us-east-1", "p5.48xlarge", "H100", 8,
                        6.88, None, (), None, False)  # fmt: skip
    horizon = SimpleNamespace(observed_hours=24, hours=8760, start=bills.window().end)
    (one,), (note,) = owned_from(bills.commitments(), bill, {offer.id: offer}, horizon)
    assert (one.gpus, one.until_hour, one.usd_per_month) == (8, 0, 0)
    assert "no end date" in note
