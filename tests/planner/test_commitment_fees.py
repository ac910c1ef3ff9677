"""Google Cloud commitments: the fee goes to what it covers hour by hour, the rest is unused.

The commitments of all tests are of one bill, each under a billing account of its own.
"""

from __future__ import annotations

from decimal import Decimal as D
from functools import cache

from data import money
from tests import fleet as t

GPU = "Nvidia H100 80GB GPU running in Americas"
GPU_FEE = "Commitment v1: Nvidia H100 80GB GPU running in Americas for 1 Year"
VM = {
    "source": "gcp", "dataset": "detailed", "account": "ml", "region": "us-central1",
    "instance_type": "a3-highgpu-8g", "usage_unit": "hour",
}  # fmt: skip


def usage(resource: str, start: float, covered: float, cost: str, **more) -> dict:
    """An hour of eight GPUs, some of them covered; `cost` is what the credits leave."""
    is_whole = covered == 8
    row = {
        "sku_description": GPU, "usage_qty": D(8), "covered_qty": D(str(covered)) or None,
        "purchase_option": "reserved" if covered >= 4 else "on_demand",
        "commitment_status": "used" if covered >= 4 else None,
        "effective_cost": D(0) if is_whole else D(cost), "list_cost": D("78.4"),
    }  # fmt: skip
    return t.charge(resource, start=start, **(VM | row | more))


def part(resource: str, start: float, sku: str, qty: str, **more) -> dict:
    """An hour of cores, memory or disk, wholly covered unless told otherwise."""
    row = {"sku_description": sku, "usage_qty": D(qty), "covered_qty": D(qty), "gpu_hours": None,
           "instance_hours": None, "gpu_count": 8, "purchase_option": "reserved",
           "commitment_status": "used", "effective_cost": D(0)}  # fmt: skip
    return t.charge(resource, start=start, **(VM | row | more))


def fee(sku: str, start: float, qty: str, cost: str, **more) -> dict:
    """The fee of an hour of a resource that is committed to, in a project of its own."""
    row = {"account": "billing", "sku_description": sku, "usage_qty": D(qty), "gpus": 0,
           "gpu_count": None, "gpu_model": None, "instance_type": None, "instance_hours": None,
           "charge_type": "fee", "purchase_option": "reserved", "commitment_id": "c-1",
           "effective_cost": D(cost), "committed_cost": D(cost)}  # fmt: skip
    return t.charge(None, start=start, **(VM | row | more))


OLDER = "Commitment - dollar based v1: GCE for 1 year"
SPEND = {"purchase_option": "savings_plan", "commitment_status": "used"}
SPEND_FEE = {"purchase_option": "savings_plan", "usage_unit": "", "usage_qty": None}
PARTS = [
    ("Commitment v1: A3 Cpu in Americas for 1 Year", "A3 Instance Core running in Iowa", "208"),
    ("Commitment v1: A3 Ram in Americas for 1 Year", "A3 Instance Ram running in Iowa", "1872"),
    ("Commitment v1: Local SSD In Iowa", "SSD backed Local Storage in Iowa", "6000"),
]
N2 = {"instance_type": "n2-standard-8", "gpu_count": None, "gpu_model": None}
EAST = {"region": "us-east4"}
BILLS = {
    "hours": [
        *(fee(GPU_FEE, hour, "16", "64") for hour in range(3)),
        usage("vm-1", 0, 8, "0"), usage("vm-2", 0, 4, "39.2"),
        usage("vm-1", 2, 8, "0"), usage("vm-2", 2, 8, "0"), usage("vm-3", 2, 4, "39.2"),
    ],
    "parts": [
        fee(GPU_FEE, 0, "16", "10", commitment_id="c-p"), usage("vm-1", 0, 8, "0"),
        *(fee(sku, 0, str(2 * int(qty)), "10", commitment_id="c-p") for sku, _, qty in PARTS),
        *(part("vm-1", 0, sku, qty) for _, sku, qty in PARTS),
        # Cores of another family, and of machines without GPUs, are not of this fleet.
        fee("Commitment v1: N2 Cpu in Americas for 1 Year", 0, "8", "99", commitment_id="c-n"),
        part("web-1", 0, "N2 Instance Core running in Iowa", "8", **N2),
    ],
    "two": [
        fee(GPU_FEE, 0, "8", "40", commitment_id="c-2"),
        fee(GPU_FEE, 0, "16", "48", commitment_id="c-3"),
        usage("vm-1", 0, 8, "0"), usage("vm-2", 0, 4, "39.2"),
        # A fee of another place pays for nothing here.
        fee(GPU_FEE, 0, "8", "7", region="europe-west4", commitment_id="c-4"),
    ],
    "unclear": [
        fee(GPU_FEE, 0, "16", "64") | {"usage_qty": None}, usage("vm-1", 0, 8, "0"),
        fee(GPU_FEE, 0, "16", "32", usage_unit="month", **EAST), usage("vm-2", 0, 8, "0", **EAST),
    ],
    "spend": [
        fee(OLDER, 0, "1", "60", **SPEND_FEE, commitment_id="old"),
        usage("vm-1", 0, 8, "0", **SPEND),
        usage("vm-2", 0, 4, "39.2", **SPEND),
        usage("vm-3", 0, 0, "50", **SPEND),
        fee(OLDER, 0, "1", "5", **SPEND_FEE, commitment_id="new", commitment_status="unused"),
        fee(OLDER, 1, "1", "30", **SPEND_FEE, commitment_id="new"),
        usage("vm-3", 1, 0, "78.4"),
    ],
}  # fmt: skip


@cache
def found():
    bill = [
        row | {"billing_account": payer, "account": payer}
        for payer, rows in BILLS.items()
        for row in rows
    ]
    owned = t.owned({"id": "new", "cloud": "gcp", "kind": "savings_plan", "instance_type": None,
                     "family": "a3-high", "count": None, "usd_per_hour": 30})  # fmt: skip
    return t.fleet(bill, [], 3, commitments=owned)


def hours_of(payer: str):
    frame = found().hours
    frame = frame.assign(hour=frame["hour_start"].dt.hour)
    return frame[frame["account"] == payer]


def costs(frame, *by: str) -> dict:
    sums = frame.groupby(list(by), dropna=False)["cost"].agg(money.total)
    return {key: value.quantize(D("1e-6")) for key, value in sums.items()}


def paid(payer: str) -> D:
    """What the source rows of a billing account cost."""
    return money.total(row["effective_cost"] for row in BILLS[payer])


def test_a_resource_fee_goes_to_the_quantity_it_covers_and_the_rest_is_unused():
    # 16 GPUs committed at 64.00 an hour = 4.00 each. Hour 0: 8 + 4 covered, 12 x 4 = 48 used and
    # 16 unused; of vm-2 four GPU-hours stay on demand at 39.20. Hour 1: nothing runs, 64 unused.
    # Hour 2: 8 + 8 + 4 covered of 16: no carry-over, 64 shared by 20 GPU-hours = 3.20 each.
    frame = hours_of("hours")
    assert costs(frame, "hour", "instance_id", "purchase_option") == {
        (0, "vm-1", "reserved"): 32,
        (0, "vm-2", "reserved"): 16,
        (0, "vm-2", "on_demand"): D("39.2"),
        (0, "commitment:c-1", "reserved"): 16,
        (1, "commitment:c-1", "reserved"): 64,
        (2, "vm-1", "reserved"): D("25.6"),
        (2, "vm-2", "reserved"): D("25.6"),
        (2, "vm-3", "reserved"): D("12.8"),
        (2, "vm-3", "on_demand"): D("39.2"),
    }
    # The money is that of the source rows, to the last digit: 3 x 64 + 2 x 39.2. So are the hours.
    assert money.total(frame["cost"]) == paid("hours") == D("270.4")
    hours = frame.groupby(["purchase_option"])["gpu_hours"].agg(money.total)
    assert hours.to_dict() == {"on_demand": 8, "reserved": 32}
    assert set(frame.loc[frame["purchase_option"] == "reserved", "commitment_id"]) == {"c-1"}
    (unused,) = (row for row in found().findings if row.scope == "gcp/c-1")
    # 4 and 16 GPU-hours at 4.00
    assert (unused.check, unused.count, unused.amount) == ("unused_capacity", 20, 80)


def test_gpus_cores_memory_and_disk_settle_apart_and_go_with_the_machine():
    # Each resource: 10 an hour for twice what vm-1 uses: 5 of each are the machine's, 5 unused.
    # The disk's commitment is the GPUs' own, and so is its unused part.
    frame = hours_of("parts")
    assert costs(frame, "instance_id") == {"vm-1": 20, "commitment:c-p": 20}
    assert money.total(frame["gpu_hours"]) == 8


def test_two_commitments_of_a_place_share_its_usage_by_what_each_commits_to():
    # c-2: 8 GPUs for 40, c-3: 16 for 48; 12 of 24 are used: half of each fee. The hours divide 1:2.
    frame = hours_of("two")
    frame = frame[frame["purchase_option"] == "reserved"]
    is_used = ~frame["instance_id"].str.startswith("commitment:")
    assert costs(frame[is_used], "commitment_id") == {"c-2": 20, "c-3": 24}
    hours = frame[is_used].groupby("commitment_id")["gpu_hours"].agg(money.total)
    assert [value.quantize(D("1e-6")) for value in hours] == [4, 8]
    assert costs(frame[~is_used], "commitment_id") == {"c-2": 20, "c-3": 24, "c-4": 7}


def test_a_fee_that_cannot_be_spread_is_told_and_its_usage_has_no_known_cost():
    assert sorted((one.amount, one.count) for one in found().unspread) == [(32, 1), (64, 1)]
    told = [row.detail for row in found().findings if row.check == "commitment_fee_not_spread"]
    assert "another unit" in max(told)
    assert "how much is committed" in min(told)
    checks = t.checks_of(found())
    assert (checks["covered_without_fee"].count, checks["no_price"].count) == (16, 16)
    assert hours_of("unclear")["cost"].isna().all()


def test_spend_commitments_of_both_kinds_stand_in_one_month_and_count_each_dollar_once():
    # Older kind: fee 60, credits leave nothing of vm-1 (list 78.4) and half of vm-2 (list 39.2
    # covered, 39.2 paid): 40 and 20. Newer kind: vm-3 at its price of 50; its fee leaves 5 unused
    # in hour 0, and all of 30 in hour 1, in which nothing used it and there is no offset.
    frame = hours_of("spend")
    assert costs(frame, "instance_id", "purchase_option") == {
        ("vm-1", "savings_plan"): 40,
        ("vm-2", "savings_plan"): 20,
        ("vm-2", "on_demand"): D("39.2"),
        ("vm-3", "savings_plan"): 50,
        ("vm-3", "on_demand"): D("78.4"),
        ("commitment:new", "savings_plan"): 35,
    }
    assert money.total(frame["cost"]) == paid("spend")
