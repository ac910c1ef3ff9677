"""Capacity Block fees: spread over the block's hours where its dates are known, told where not.

The blocks of all tests are of one bill, each in an account of its own.
"""

from __future__ import annotations

from decimal import Decimal as D
from functools import cache
from types import SimpleNamespace

from data import money
from planner.owned import owned_from
from planner.supply import SupplyOffer
from tests import bills
from tests import fleet as t

FIRST_DAY = [11.5, *range(12, 24)]


def arn(block_id: str) -> str:
    return f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{block_id}"


def fee(account: str, cost: str, day: int = 0, **more) -> dict:
    """The fee of a block, or with `charge_type` its refund: a row of its start day."""
    row = {"gpus": 0, "gpu_count": None, "instance_hours": None, "charge_type": "fee",
           "purchase_option": "capacity_block", "effective_cost": D(cost)}  # fmt: skip
    return t.charge(None, start=24 * day, hours=24, account=account, **(row | more))


def run(account: str, resource: str, hours: list[float], **more) -> list[dict]:
    """Hours of a machine in the account's block, at no cost; half an hour from a half hour on."""
    row = {"purchase_option": "capacity_block", "capacity_reservation_id": arn(f"cr-{account}"),
           "account": account, "effective_cost": D(0)}  # fmt: skip
    return [t.charge(resource, at, 0.5 if at % 1 else 1, **(row | more)) for at in hours]


def block(account: str, **more) -> dict:
    """Two nodes from 11:30 of the first day to 11:30 of the second: 48 instance-hours."""
    row = {"id": f"cr-{account}", "account": account, "kind": "capacity_block", "count": 2,
           "region": "us-east-1", "start": t.hour(11.5), "end": t.hour(35.5)}  # fmt: skip
    return row | more


HALF = {"period_end": t.hour(11.5), "gpu_hours": D(4)}
PLAIN = {"purchase_option": "on_demand", "capacity_reservation_id": None}
BILL = [
    fee("net", "2000"), fee("net", "-80", charge_type="refund"),
    *run("net", "i-1", FIRST_DAY), *run("net", "i-2", [14, 15]),
    fee("before", "1920", day=-1), *run("before", "i-1", list(range(11))),
    *run("before", "i-1", [11], **HALF),
    fee("two", "1920"), fee("two", "1200"), *run("two", "i-1", FIRST_DAY),
    *run("two", "i-9", FIRST_DAY, capacity_reservation_id=arn("cr-other")),
    fee("old", "1920"), *run("old", "i-1", FIRST_DAY, **PLAIN), *run("old", "i-3", [9], **PLAIN),
    *run("old", "i-5", [13], capacity_reservation_id=None), *run("old", "i-6", [13], **PLAIN),
    t.charge("i-4", start=12, account="old"),
    fee("unknown", "2000"), fee("unknown", "-80", charge_type="refund"),
    *run("unknown", "i-1", [12]), t.charge("i-2", account="unknown"),
    fee("back", "2000"), fee("back", "-2000", charge_type="refund"), fee("back", "700", day=3),
    *run("back", "i-1", [12]), t.charge("i-2", account="back"),
]  # fmt: skip
OWNED = (
    block("net"),
    block("before", start=t.hour(-12.5), end=t.hour(11.5)),
    block("two", usd_per_instance_hour=D(40)),
    block("two", id="cr-other", count=1, usd_per_instance_hour=D(50)),
    block("old"),
    block("unknown", id="cr-8", region="us-east-2"),
    block("unknown", id="cr-9", start=t.hour(-1)),
    block("back"),
)


@cache
def found():
    return t.fleet(BILL, [], 24, commitments=t.owned(*OWNED))


def hours_of(account: str):
    return found().hours[found().hours["account"] == account]


def costs_of(account: str) -> dict:
    costs = hours_of(account).groupby("instance_id")["cost"].agg(money.total)
    return {name: cost.quantize(D("1e-6")) for name, cost in costs.items()}


def test_a_fee_net_of_its_refund_is_spread_over_the_block_and_the_rest_is_unused():
    # Net fee 2000 - 80 = 1920 over 2 x 24 instance-hours: 40 an hour. In the first day the block
    # lasts 12.5 hours = 25 instance-hours = 1000: i-1 runs 12.5 hours = 500, i-2 two = 80.
    frame = hours_of("net")
    assert costs_of("net") == {"i-1": 500, "i-2": 80, "commitment:cr-net": 420}
    assert set(frame["commitment_id"]) == {"cr-net"}
    assert set(frame["purchase_option"]) == {"capacity_block"}
    assert frame["committed_until"].dt.day.eq(3).all()
    # 10.5 instance-hours of 8 GPUs stood unused.
    (unused,) = (row for row in found().findings if row.scope == "aws/cr-net")
    assert (unused.check, unused.count, unused.amount) == ("unused_capacity", 84, 420)
    first = frame[frame["hour_start"] == t.hour(11)]
    assert money.total(first["cost"]) == 40  # half an hour of two nodes


def test_a_block_that_began_before_the_window_costs_its_hours_in_it():
    # The day holds 11.5 of its 24 hours: 23 of 48 instance-hours = 920 of 1920, half of them used.
    last = hours_of("before").set_index("instance_id").query("hour_start == @t.hour(11)")["cost"]
    assert costs_of("before") == {"i-1": 460, "commitment:cr-before": 460}
    assert last.to_dict() == {"i-1": 20, "commitment:cr-before": 20}


def test_blocks_of_one_day_and_type_share_their_fees_by_size_and_stated_rates():
    # 48 instance-hours at 40 and 24 at 50 = 1920 + 1200 in two rows that name no block.
    assert costs_of("two") == {"i-1": 500, "i-9": 625, "commitment:cr-two": 500}


def test_machines_at_no_cost_inside_a_known_block_are_of_it_in_exports_without_its_columns():
    frame = hours_of("old")
    options = frame.groupby("instance_id")["purchase_option"].unique().map(list).to_dict()
    assert options == {
        "i-1": ["capacity_block"],
        "i-3": ["on_demand"],  # before the block began
        "i-4": ["on_demand"],  # it is paid for by the hour
        "i-5": ["capacity_block"],
        "i-6": ["capacity_block"],
        "commitment:cr-old": ["capacity_block"],
    }
    # At 13 three nodes ran in a block of two: they share its 80 an hour.
    three = frame[frame["hour_start"] == t.hour(13)]
    assert sorted(three["cost"].round(2)) == [D("26.67")] * 3
    assert money.total(three["cost"]).quantize(D("1e-6")) == 80


def test_a_fee_of_an_unknown_block_stays_on_its_day_and_its_hours_never_look_free():
    # The table knows a block of another region, and one of another start day.
    (left,) = found().unspread
    assert (left.account, left.amount, left.count, left.currency) == ("unknown", 1920, 2, "USD")
    told = t.checks_of(found())
    assert told["capacity_block_not_spread"].severity == "warning"
    assert told["capacity_block_not_spread"].amount == 1920
    assert told["no_price"].count == 16  # and those without a fee, below
    frame = hours_of("unknown").set_index("instance_id")
    assert frame["cost"].to_dict() == {"i-1": None, "i-2": D("98.32")}
    assert frame.loc["i-1", "commitment_id"] == arn("cr-unknown")


def test_a_fee_that_was_given_back_is_none_and_the_hours_without_a_fee_have_no_known_cost():
    # The other fee is of a later day than the window.
    costs = hours_of("back").set_index("instance_id")["cost"]
    assert costs.to_dict() == {"i-1": None, "i-2": D("98.32")}
    assert t.checks_of(found())["covered_without_fee"].count == 8


def test_the_fees_of_the_windows_hours_are_all_given_out():
    # Of "net", "before", "two" and "old": 1000 + 920 + 1625 + 1000, of which 580 + 460 + 1125 + 540
    # used (of "old" 12.5 hours of one machine = 500, and 80 instead of 40 in the hour of three).
    told = t.checks_of(found())["adds_up_fees"]
    assert (told.severity, told.scope) == ("info", "aws")
    assert abs(told.amount) < D("1e-5")
    assert "fees of 4,545.00 for the hours of the window" in told.detail
    assert "2,705.00 went to what they cover, 1,840.00 stood unused" in told.detail


def test_a_block_without_dates_is_capacity_of_today_and_of_no_day_to_come():
    rows = bills.node_hours("i-1", range(24), purchase_option="capacity_block", commitment_id="c")
    bill = bills.as_numbers(bills.fleet(rows)).assign(cost=float("nan"))
    offer = SupplyOffer("aws/us-east-1/p5.48xlarge", "aws", "us-east-1", "p5.48xlarge", "H100", 8,
                        6.88, None, (), None, False)  # fmt: skip
    horizon = SimpleNamespace(observed_hours=24, hours=8760, start=bills.window().end)
    (one,), (note,) = owned_from(bills.commitments(), bill, {offer.id: offer}, horizon)
    assert (one.gpus, one.until_hour, one.usd_per_month) == (8, 0, 0)
    assert "no end date" in note
