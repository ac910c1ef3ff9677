"""Billed GPU-hours: what of a bill is counted, how hours and money are divided, what is told."""

from __future__ import annotations

from decimal import Decimal as D

import pandas as pd

from data import catalogue, frames, money
from data.schema import PRICES
from planner.fleet_hours import Policy
from planner.gpu_counts import with_stated_gpus
from planner.observed import extents
from planner.states import Thresholds
from tests import fleet as t


def test_money_divides_to_the_last_digit():
    # 100 over 3 GPUs: 33.3333333333 twice, and the first part takes the rest.
    readings = [t.reading("a"), t.reading("b", **t.held()), t.reading("c", **t.idle())]
    found = t.fleet([t.charge(gpus=3, effective_cost=D(100))], readings)
    costs = sorted(found.hours["cost"])
    assert costs == [D("33.3333333333"), D("33.3333333333"), D("33.3333333334")]
    assert sum(costs) == 100


def test_rows_of_one_vm_without_gpu_hours_add_cost_and_no_hours():
    # One a3-highgpu-8g hour in three SKUs: 33.61 for the GPUs, 2.27 cores, 2.44 the rest.
    vm = {"source": "gcp", "account": "p", "instance_type": "a3-highgpu-8g", "resource": "vm-1"}
    rows = [
        t.charge(**vm, effective_cost=D("33.61")),
        t.charge(**vm, effective_cost=D("2.27"), gpu_hours=None),
        t.charge(**vm, effective_cost=D("2.44"), gpu_hours=None),
        t.charge(**(vm | {"resource": "disk-1"}), effective_cost=D(5), gpu_hours=None),
    ]
    found = t.fleet(rows, [])
    assert t.by_state(found.hours) == {"unknown": 8}
    assert t.by_state(found.hours, "cost") == {"unknown": D("38.32")}


def test_an_hour_that_two_ways_of_paying_share_keeps_both_apart():
    rows = [
        t.charge(
            hours=0.25, effective_cost=D(15), purchase_option="reserved", commitment_id="ri-1"
        ),
        t.charge(hours=0.75, effective_cost=D(74)),
        t.charge(gpus=0, effective_cost=D(1), sku="DataTransfer"),
    ]
    found = t.fleet(rows, t.node_readings(**t.idle()), commitments=t.owned({}))
    frame = found.hours.set_index("purchase_option")
    assert frame.loc["reserved", ["gpu_hours", "cost"]].tolist() == [2, 15]
    # The transfer has no GPU-hours of its own: it goes with the larger part of the hour.
    assert frame.loc["on_demand", ["gpu_hours", "cost"]].tolist() == [6, 75]
    assert frame["stoppable"].to_dict() == {"reserved": False, "on_demand": True}
    assert frame.loc["reserved", "committed_until"] == pd.Timestamp("2027-01-01", tz="UTC")


def test_taxes_fees_and_purchases_are_no_hours_of_machines():
    rows = [t.charge(), t.charge(charge_type="tax"), t.charge(charge_type="fee", gpu_hours=None)]
    found = t.fleet(rows, [])
    assert t.by_state(found.hours, "cost") == {"unknown": D("98.32")}


def test_an_unused_commitment_is_free_capacity_with_cost_and_no_hours():
    unused = t.charge(
        None, gpu_hours=None, instance_hours=None, effective_cost=D(60), charge_type="fee",
        purchase_option="reserved", commitment_id="ri-1", commitment_status="unused",
    )  # fmt: skip
    found = t.fleet([t.charge(), unused], [], commitments=t.owned({}))
    spare = found.hours[found.hours["instance_id"] == "commitment:ri-1"].iloc[0]
    assert (spare["state"], spare["reason"]) == ("free", "unused_commitment")
    assert (spare["gpu_hours"], spare["cost"], spare["stoppable"]) == (0, 60, False)
    assert spare["committed_until"] == pd.Timestamp("2027-01-01", tz="UTC")


def test_an_unused_commitment_of_machines_without_gpus_is_not_of_this_fleet():
    unused = t.charge(
        None, gpus=0, gpu_model=None, gpu_count=None, instance_type="m5.large",
        commitment_id="ri-m5", commitment_status="unused", purchase_option="reserved",
    )  # fmt: skip
    found = t.fleet([t.charge(), unused], [])
    assert set(found.hours["instance_id"]) == {"i-1"}


def test_the_unused_part_of_a_month_is_spread_over_the_hours_billed_so_far():
    # The month's row holds 48.00 so far, and the bill ends after 24 hours: 2.00 an hour.
    unused = t.charge(
        None, hours=29 * 24, gpu_hours=None, effective_cost=D(48), commitment_id="ri-1",
        purchase_option="reserved", commitment_status="unused",
    )  # fmt: skip
    found = t.fleet([t.charge(start=h) for h in range(24)] + [unused], [])
    spare = found.hours[found.hours["reason"] == "unused_commitment"]
    assert spare["cost"].tolist() == [2] * 24
    assert spare["estimated"].all()


def test_an_empty_capacity_reservation_is_free():
    unused = t.charge(
        "cr-1", gpu_hours=None, capacity_reservation_id="cr-1", commitment_status="unused"
    )
    found = t.fleet([unused], [])
    row = found.hours.iloc[0]
    assert (row["instance_id"], row["reason"]) == ("commitment:cr-1", "unused_reservation")
    assert (row["state"], row["cost"]) == ("free", D("98.32"))


def test_a_daily_charge_is_spread_evenly_without_telemetry_and_marked():
    # 24 node-hours = 192 GPU-hours and 240.00 a day: 8 GPU-hours and 10.00 an hour.
    found = t.fleet([t.charge(hours=24, effective_cost=D(240))], [])
    assert found.hours["gpu_hours"].tolist() == [8] * 24
    assert found.hours["cost"].tolist() == [10] * 24
    assert found.hours["estimated"].all()


def test_a_daily_charge_is_spread_over_the_hours_in_which_the_node_was_seen():
    # 8 node-hours = 64 GPU-hours in a day, seen from 9 to 17: 8 GPUs in each of those hours.
    daily = t.charge(hours=24, gpu_hours=D(64), instance_hours=D(8), effective_cost=D("786.57"))
    found = t.fleet([daily], [r for h in range(9, 17) for r in t.node_readings(h)])
    assert t.by_state(found.hours) == {"busy": 64}
    assert sorted(set(found.hours["hour_start"])) == [t.hour(h) for h in range(9, 17)]
    assert sum(found.hours["cost"]) == D("786.57")
    assert found.hours["estimated"].all()


def test_a_node_cannot_bill_more_in_an_hour_than_it_has_gpus():
    # 192 GPU-hours in the day, seen in 6 hours: 6 x 8 there, the other 144 are unknown.
    found = t.fleet([t.charge(hours=24)], [r for h in range(6) for r in t.node_readings(h)])
    assert t.by_state(found.hours) == {"busy": 48, "unknown": 144}
    assert found.hours.groupby("hour_start")["gpu_hours"].sum().tolist() == [8] * 24


def test_a_daily_total_that_does_not_divide_stays_exact():
    # 100 / 24 has no end; the parts are rounded and the largest takes the rest.
    found = t.fleet([t.charge(hours=24, effective_cost=D("100.00000000000000000000000001"))], [])
    assert money.total(found.hours["cost"]) == D("100.00000000000000000000000001")


def test_two_views_of_one_azure_bill_count_their_hours_once():
    view = {"source": "azure", "instance_type": "Standard_ND96isr_H100_v5", "hours": 24}
    rows = [
        t.charge(**view, dataset="actual", effective_cost=None, billed_cost=D(0), export_id="a"),
        t.charge(**view, dataset="amortized", effective_cost=D(240), export_id="b"),
    ]
    found = t.fleet(rows, [])
    assert t.by_state(found.hours) == {"unknown": 192}
    assert t.by_state(found.hours, "cost") == {"unknown": 240}


def test_a_correction_moves_hours_and_money_without_making_any():
    # An hour was billed on demand, then corrected to reserved: 8 - 8 + 8 GPU-hours.
    bill = [
        t.charge(),
        t.charge(gpu_hours=D(-8), effective_cost=D("-98.32"), is_correction=True),
        t.charge(effective_cost=D(60), purchase_option="reserved", commitment_id="r"),
    ]
    found = t.fleet(bill, t.node_readings())
    assert sum(found.hours["gpu_hours"]) == 8
    assert sum(found.hours["cost"]) == 60


def test_currencies_stay_apart():
    rows = [t.charge(), t.charge("i-2", currency="NOK", effective_cost=D(1000))]
    found = t.fleet(rows, [])
    assert found.hours.groupby("currency")["cost"].sum().to_dict() == {
        "USD": D("98.32"),
        "NOK": 1000,
    }


def test_managed_services_are_marked():
    found = t.fleet([t.charge(managed_service=True, instance_type="ml.p5.48xlarge")], [])
    assert found.hours["managed_service"].all()


def test_hours_outside_the_window_are_left_out():
    found = t.fleet([t.charge(start=h) for h in range(48)], [], hours=24)
    assert t.by_state(found.hours) == {"unknown": 192}


def test_an_empty_store_gives_an_empty_fleet():
    found = t.fleet([], [])
    assert not len(found.hours)
    assert not len(found.covered)


def test_charges_of_one_hour_have_the_class_of_the_first_rule_whatever_the_names():
    policy = Policy({"b": Thresholds(), "a": Thresholds()}, t.SHAPES)
    rows = [t.charge(hours=0.5, workload_class="a"), t.charge(hours=0.5, workload_class="b")]
    found = t.fleet(rows, [], policy=policy)
    assert set(found.hours["workload_class"]) == {"b"}


def stated(*rows):
    """The shapes of the tests and those that a user's absolute prices state."""
    plain = {"unit": "u", "export_id": "p", "purchase_option": "on_demand"}
    full = [{**plain, "source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    return catalogue.with_stated(t.SHAPES, frames.conform(pd.DataFrame(full), PRICES))


FLUID = {
    "provider": "fluidstack", "instance_type": "p9h100", "gpu_model": "H100-SXM5-80GB", "gpus": 8,
}  # fmt: skip
UNKNOWN = {"gpus": 0, "gpu_count": None, "gpu_model": None}


def test_gpus_of_a_type_that_the_users_prices_state_are_counted():
    # 2 hours of a machine of 8 GPUs at 20 an hour, loaded while nobody knew the type: 16 GPU-hours.
    machine = {"source": "fluidstack", "instance_type": "P9H100", **UNKNOWN}
    bill = [t.charge(start=h, effective_cost=D(20), **machine) for h in range(2)]
    assert not len(t.fleet(bill, []).hours)
    found = t.fleet(bill, t.node_readings(cloud="fluidstack"), policy=Policy(shapes=stated(FLUID)))
    assert t.by_state(found.hours) == {"busy": 8, "unknown": 8}
    assert t.by_state(found.hours, "cost") == {"busy": 20, "unknown": 20}
    assert set(found.hours["gpu_family"]) == {"H100"}
    counted = with_stated_gpus(t.billing(bill), stated(FLUID))
    twice = with_stated_gpus(counted, stated(FLUID))
    assert t.connection().to_pyarrow(twice.gpu_hours.sum()).as_py() == 16
    (extent,) = extents(counted, t.utilization([]), t.day(1))
    assert (extent.start, extent.end) == (t.hour(0), t.hour(2))


def test_telemetry_of_an_owned_machine_has_the_family_that_the_prices_state():
    own = {**FLUID, "provider": "onprem", "instance_type": "hgx", "gpus": 4}
    readings = t.node_readings(gpus=4, cloud="onprem", instance_type="HGX")
    found = t.fleet([], readings, policy=Policy(shapes=stated(own)))
    assert t.by_state(found.hours) == {"busy": 4}
    assert set(found.hours["gpu_family"]) == {"H100"}


def test_an_hour_from_which_corrections_take_more_than_was_billed_is_of_0_hours_and_its_money():
    # 8 GPU-hours for 98.32 and a correction of -25 for -300.00: 0 GPU-hours, and -201.68 USD.
    bill = [
        t.charge(),
        t.charge(gpu_hours=D(-25), effective_cost=D(-300), is_correction=True),
        t.charge(start=1),
    ]
    found = t.fleet(bill, t.node_readings())
    first = found.hours[found.hours["hour_start"] == t.hour(0)]
    assert (sum(first["gpu_hours"]), sum(first["cost"])) == (0, D("-201.68"))
    assert sum(found.hours["gpu_hours"]) == 8
    assert (found.hours["gpu_hours"] >= 0).all()
    told = t.checks_of(found)["negative_hours"]
    assert (told.severity, told.scope, told.count) == ("warning", "aws", 17)


def test_unused_gpu_hours_are_told_with_their_money_where_the_export_states_the_hours():
    spare = {
        "gpu_hours": None, "instance_hours": None, "commitment_status": "unused",
        "usage_qty": D("0.9"), "usage_unit": "10 Hours", "effective_cost": D(60),
    }  # fmt: skip
    reserved = {"commitment_id": "ri-1", "purchase_option": "reserved"}
    bill = [
        t.charge(),
        # 0.9 of `10 Hours` is 9 hours of 8 GPUs: 72 GPU-hours on each of two days.
        t.charge(None, hours=24, **reserved, **spare),
        t.charge(None, start=24, hours=24, **reserved, **spare),
        # 3 hours of an empty capacity reservation: 24 GPU-hours.
        t.charge("cr-1", capacity_reservation_id="cr-1",
                 **(spare | {"usage_qty": D(3), "usage_unit": "Hrs"})),
        # A fee counts the hours of the whole term; a unit of months is no count of hours.
        t.charge(None, charge_type="fee", **reserved, **spare),
        t.charge(None, **reserved, **(spare | {"usage_unit": "1 Month"})),
    ]  # fmt: skip
    found = t.fleet(bill, [], hours=48)
    told = [row for row in found.findings if row.check == "unused_capacity"]
    assert {row.scope: (row.count, row.amount, row.severity) for row in told} == {
        "aws/ri-1": (144, 120, "info"),
        "aws/cr-1": (24, 60, "info"),
    }
    # The states of the fleet still add up to what was billed.
    assert t.by_state(found.hours) == {"unknown": 8, "free": 0}


def test_a_daily_charge_without_telemetry_is_spread_as_its_class_was_seen_and_told():
    # Each bills 8 node-hours = 64 GPU-hours of a day: i-1 was seen from 9 to 17, i-2 of its class
    # was not, i-3 is of a class of which nothing was seen, i-4 ran all of its 24 hours.
    eight = {"hours": 24, "gpu_hours": D(64), "instance_hours": D(8), "effective_cost": D(240)}
    bill = [t.charge(name, **eight) for name in ("i-1", "i-2")]
    bill += [t.charge("i-3", **eight, workload_class="batch"), t.charge("i-4", hours=24)]
    found = t.fleet(bill, [r for h in range(9, 17) for r in t.node_readings(h)])
    frame = found.hours.assign(hour=found.hours["hour_start"].dt.hour)
    hours = {
        name: part.set_index("hour")["gpu_hours"] for name, part in frame.groupby("instance_id")
    }
    assert hours["i-2"].to_dict() == dict.fromkeys(range(9, 17), 8)
    assert sorted(set(hours["i-3"].round(4))) == [D("2.6667")]
    assert money.total(hours["i-3"]) == 64
    assert hours["i-4"].tolist() == [8] * 24
    coarse = t.checks_of(found)["coarse_grain"]
    # 64 of 384 billed GPU-hours are a mean and no more: above a tenth.
    assert (coarse.severity, coarse.count) == ("warning", 384)
    assert (
        "192 of machines that ran all the time, 64 by the hours in which telemetry" in coarse.detail
    )
    assert "64 as machines of the same class were seen, 64 evenly" in coarse.detail


def test_what_the_hours_of_the_class_cannot_hold_goes_to_the_others():
    # 80 GPU-hours of a node of 8: the class was seen in 5 hours, which hold 40; the other 40 go to
    # the 19 others.
    bill = [t.charge("i-1", start=9, hours=5), t.charge("i-2", hours=24, gpu_hours=D(80))]
    found = t.fleet(bill, [r for h in range(9, 14) for r in t.node_readings(h)])
    mine = found.hours[found.hours["instance_id"] == "i-2"]
    by_hour = mine.set_index(mine["hour_start"].dt.hour)["gpu_hours"]
    assert by_hour.loc[9:13].round(6).tolist() == [8] * 5
    assert sorted(set(by_hour.drop(range(9, 14)).round(4))) == [D("2.1053")]
    assert money.total(by_hour) == 80
