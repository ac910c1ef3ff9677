"""Billed GPU-hours: what is counted, how it is divided, and what is told instead of guessed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D

import ibis
import pandas as pd
import pytest

from data import catalogue, frames, money
from data.schema import PRICES
from planner.fleet_hours import Policy, build
from planner.gpu_counts import with_stated_gpus
from planner.observed import covered_hours, extents, observed_window, window_findings
from planner.states import Thresholds
from tests import fleet as t


def checks_of(found):
    return {finding.check: finding for finding in found.findings}


def test_gpus_that_nobody_measured_are_unknown():
    # 8 GPUs billed for an hour, 6 of them report: 2 GPU-hours are unknown.
    found = t.fleet([t.charge()], t.node_readings(gpus=6))
    assert t.by_state(found.hours) == {"busy": 6, "unknown": 2}
    assert set(found.hours["reason"].dropna()) == {"no_telemetry"}
    # 98.32 / 8 = 12.29 a GPU-hour: 6 x 12.29 = 73.74 and 2 x 12.29 = 24.58.
    assert t.by_state(found.hours, "cost") == {"busy": D("73.74"), "unknown": D("24.58")}


def test_without_telemetry_every_hour_is_unknown_and_needed():
    found = t.fleet([t.charge(start=h) for h in range(3)], [])
    assert t.by_state(found.hours) == {"unknown": 24}
    assert t.by_state(found.hours, "needed_gpu_hours") == {"unknown": 24}


def test_telemetry_cannot_make_hours():
    # 9 GPUs report where 8 are billed: 8 busy GPU-hours, and the ninth is told.
    found = t.fleet([t.charge()], t.node_readings(gpus=9))
    assert t.by_state(found.hours) == {"busy": 8}
    assert checks_of(found)["measured_more_than_billed"].count == 1


def test_states_of_a_part_of_an_hour_add_up_to_the_part():
    # Half an hour of 8 GPUs is 4 GPU-hours; 3 of 8 GPUs are free: 4 x 3/8 = 1.5.
    readings = t.node_readings(gpus=5) + t.node_readings(gpus=8, **t.idle())[5:]
    found = t.fleet([t.charge(hours=0.5)], readings)
    assert t.by_state(found.hours) == {"busy": D("2.5"), "free": D("1.5")}
    assert "measured_more_than_billed" not in checks_of(found)


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


@pytest.mark.parametrize(
    ("resource", "instance"),
    [
        ("arn:aws:ec2:us-east-1:111122223333:instance/i-0AB", "i-0ab"),
        ("//compute.googleapis.com/projects/p/zones/z/instances/VM-1", "vm-1"),
        ("/subscriptions/s/resourceGroups/g/providers/x/virtualMachines/n1", "N1"),
        ("i-7", "arn:aws:ec2:us-east-1:111122223333:instance/i-7"),
    ],
)
def test_telemetry_finds_its_instance_by_id_or_last_segment_in_any_case(resource, instance):
    found = t.fleet([t.charge(resource)], t.node_readings(instance_id=instance))
    assert t.by_state(found.hours) == {"busy": 8}


def test_telemetry_finds_its_instance_by_the_resource_name():
    found = t.fleet(
        [t.charge("4711", resource_name="train-1")], t.node_readings(instance_id="train-1")
    )
    assert t.by_state(found.hours) == {"busy": 8}


def test_an_id_that_two_instances_share_is_matched_to_none():
    twins = [t.charge(f"projects/p/zones/{zone}/instances/vm", source="gcp") for zone in "ab"]
    found = t.fleet(twins, t.node_readings(instance_id="vm", cloud="gcp"))
    assert t.by_state(found.hours) == {"unknown": 16}
    assert checks_of(found)["ambiguous_instance"].count == 8


def test_telemetry_of_an_instance_that_is_on_no_bill_is_told_and_not_counted():
    found = t.fleet([t.charge()], t.node_readings() + t.node_readings(instance_id="i-2"))
    assert t.by_state(found.hours) == {"busy": 8}
    assert checks_of(found)["measured_not_billed"].count == 8


def test_telemetry_in_an_hour_that_is_on_no_bill_is_told_and_not_counted():
    bill = [t.charge(start=0), t.charge(start=2)]
    found = t.fleet(bill, [r for h in range(3) for r in t.node_readings(h)])
    assert t.by_state(found.hours) == {"busy": 16}
    assert checks_of(found)["measured_not_billed"].count == 8


def rates(*rows):
    columns = ["cloud", "region", "instance_type", "gpu_model", "gpu_family", "usd_per_gpu_hour"]
    return Policy(shapes=t.SHAPES, rates=pd.DataFrame(list(rows), columns=columns))


def test_without_a_bill_hours_are_priced_from_the_book_and_marked():
    policy = rates(("aws", "us-east-1", None, None, "H100", D("12.29")))
    found = t.fleet([], [*t.node_readings(gpus=7), t.reading("z", **t.idle())], policy=policy)
    assert t.by_state(found.hours, "cost") == {"busy": D("86.03"), "free": D("12.29")}
    assert found.hours["estimated"].all()
    assert set(found.hours["purchase_option"]) == {"unknown"}
    assert set(found.hours["gpu_family"]) == {"H100"}
    assert not found.hours["stoppable"].any()


def test_without_a_bill_and_without_a_price_the_cost_is_unknown_and_not_0():
    found = t.fleet([], t.node_readings(cloud="onprem"))
    assert t.by_state(found.hours) == {"busy": 8}
    assert found.hours["cost"].isna().all()
    assert checks_of(found)["no_price"].severity == "error"


def test_no_reading_is_never_an_idle_gpu():
    # GPU 0 reads 90% all day; GPU 1 has MIG on and reads nothing; GPU 2 reports for 6 hours.
    readings = [t.reading("0", h) for h in range(24)]
    readings += [t.reading("1", h, None, mig_uuid="MIG-1") for h in range(24)]
    readings += [t.reading("2", h) for h in range(6)]
    for bill in ([t.charge(start=h, gpus=3) for h in range(24)], []):
        found = t.fleet(bill, readings)
        # 24 + 6 busy; 24 of MIG and 18 of silence unknown.
        assert t.by_state(found.hours) == {"busy": 30, "unknown": 42}
        reasons = found.hours.groupby("reason")["gpu_hours"].sum().to_dict()
        assert reasons == {"mig": 24, "no_telemetry": 18}


def test_gpus_are_counted_by_device_and_not_by_series():
    # 8 GPUs, each used by 3 pods in turn: 24 series, and still 8 GPUs.
    readings = [
        row for h in range(24) for row in t.node_readings(h, pod=f"pod-{h // 8}", namespace="ml")
    ]
    found = t.fleet([t.charge(start=h) for h in range(24)], readings)
    assert t.by_state(found.hours) == {"busy": 192}
    assert not found.findings


def test_the_tail_of_a_job_is_idle():
    # One GPU at $4: an hour at 100%, then 23 at 0 while the job holds it: 23 x 4 = $92.
    bill = [t.charge(start=h, gpus=1, effective_cost=D(4)) for h in range(24)]
    readings = [t.reading("a", 0, 100.0)] + [t.reading("a", h, **t.held()) for h in range(1, 24)]
    found = t.fleet(bill, readings)
    assert t.by_state(found.hours) == {"busy": 1, "idle_held": 23}
    assert t.by_state(found.hours, "cost")["idle_held"] == 92


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


def test_team_and_user_come_from_telemetry_and_the_team_else_from_tags():
    readings = t.node_readings(gpus=4, user="ana", team="vision")
    found = t.fleet([t.charge(tags='{"user:Team": "research"}')], readings)
    owners = found.hours.groupby(["team", "user"], dropna=False)["gpu_hours"].sum()
    assert owners.to_dict()[("vision", "ana")] == 4
    assert found.hours.loc[found.hours["user"].isna(), "team"].tolist() == ["research"]


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


def observed(bill, readings, as_of, **more):
    return observed_window(t.billing(bill), t.utilization(readings), as_of, 365, **more)


def test_a_half_written_day_feeds_no_plan():
    # Two whole days and 16 hours of the third (66%): the window is the two days.
    bill = [t.charge(start=h) for h in range(64)]
    assert observed(bill, [], t.day(3)) == t.window(48)
    assert observed(bill, [], t.day(3), whole_days=False) == t.window(64)
    found = window_findings(
        extents(t.billing(bill), t.utilization([]), t.day(3)), t.window(48), t.day(3)
    )
    assert [(row.check, row.severity, row.count) for row in found] == [("late_tail", "info", 16)]


def test_the_day_asked_for_is_not_looked_at():
    bill = [t.charge(start=h) for h in range(72)]
    assert observed(bill, [], t.day(1)) == t.window(24)
    assert observed(bill, [], t.day(1), whole_days=False) == t.window(24)


def test_history_is_limited_to_whole_days_before_the_end():
    bill = [t.charge(start=h) for h in range(72)]
    window = observed_window(t.billing(bill), t.utilization([]), t.day(3), 2)
    assert window == t.window(48, first=24)


def test_the_cloud_that_ends_first_ends_the_window_unless_it_has_stopped():
    near = [t.charge(start=h) for h in range(72)]
    gcp = [t.charge("vm", start=h, source="gcp") for h in range(48)]
    assert observed(near + gcp, [], t.day(3)) == t.window(48)
    far = [t.charge(start=h) for h in range(10 * 24)]
    assert observed(far + gcp, [], t.day(10)) == t.window(240)
    tables = t.billing(far + gcp), t.utilization([])
    found = window_findings(extents(*tables, t.day(10)), t.window(240), t.day(10))
    assert {(row.check, row.scope) for row in found} == {
        ("late_tail", "gcp/billing"), ("stale_data", "gcp/billing"),
    }  # fmt: skip


def test_less_than_a_day_of_data_is_a_window_of_its_hours():
    assert observed([t.charge(start=h) for h in range(3, 9)], [], t.day(1)) == t.window(6, first=3)


def test_an_empty_store_has_an_empty_window():
    assert observed([], [], date(2026, 11, 2)).hours == 0


def test_telemetry_alone_makes_a_window():
    readings = [r for h in range(24) for r in t.node_readings(h)]
    assert observed([], readings, t.day(1)) == t.window(24)


def test_a_day_without_any_row_is_missing_and_a_shorter_pause_is_not():
    # Rows in hours 0 and 5 of the first day and in hour 3 of the third: the 45 hours between
    # are missing, the 4 hours before and the 20 after are a fleet of nothing.
    rows = [t.charge(start=0), t.charge(start=5, gpus=0, gpu_hours=None), t.charge(start=51)]
    covered = covered_hours(t.billing(rows), t.utilization([]), t.window(72))
    assert list(covered) == [t.hour(h) for h in (*range(6), *range(51, 72))]


def classed(readings, order, bill_class="by-tag"):
    """GPU-hours by class of one hour whose bill has a class and whose telemetry has another."""
    policy = Policy({name: Thresholds() for name in order}, t.SHAPES)
    telemetry = t.utilization(readings).mutate(
        workload_class=ibis.cases((ibis._.namespace == "serving", "by-namespace"), else_="account")
    )
    bill = t.billing([t.charge(workload_class=bill_class)])
    found = build(bill, telemetry, policy, t.window(1))
    return found.hours.groupby("workload_class")["gpu_hours"].sum().to_dict()


def test_the_first_rule_that_matches_the_bill_or_the_telemetry_gives_the_class():
    # Six GPUs report, two of them from the namespace; the other two have the class of the bill.
    readings = t.node_readings(gpus=6)
    readings[:2] = t.node_readings(gpus=2, namespace="serving")
    # The tag comes first: telemetry's later rules do not beat it.
    assert classed(readings, ["by-tag", "by-namespace", "account"]) == {"by-tag": 8}
    # The namespace comes first and takes its 2 GPUs; the account rule comes last and takes none.
    order = ["by-namespace", "by-tag", "account"]
    assert classed(readings, order) == {"by-namespace": 2, "by-tag": 6}
    # The account comes first: it takes the 4 GPUs that report without the namespace.
    order = ["account", "by-namespace", "by-tag"]
    assert classed(readings, order) == {"account": 4, "by-namespace": 2, "by-tag": 2}


def test_a_class_of_telemetry_counts_where_the_bill_has_none():
    readings = t.node_readings(gpus=8, namespace="serving")
    order = ["by-tag", "by-namespace"]
    assert classed(readings, order, bill_class="unclassified") == {"by-namespace": 8}


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
    told = checks_of(found)["negative_hours"]
    assert (told.severity, told.scope, told.count) == ("warning", "aws", 17)


def test_the_history_is_the_newest_that_has_data_however_long_ago():
    # 72 hours of data and a day far behind them: the newest 2 days of data, to the hour.
    bill = [t.charge(start=h) for h in range(72)]
    tables = t.billing(bill), t.utilization([])
    for late in (date(2027, 6, 1), date.max):
        window = observed_window(*tables, late, 2, whole_days=False)
        assert window == t.window(48, first=24)
        assert observed_window(*tables, late, 2) == window
        assert observed_window(*tables, late, 10**6, whole_days=False) == t.window(72)
        assert any(row.check == "stale_data" for row in
                   window_findings(extents(*tables, late), window, late))  # fmt: skip


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
