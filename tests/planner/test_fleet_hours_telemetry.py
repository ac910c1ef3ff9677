"""Billed GPU-hours met by telemetry: whose readings count, for what state, what class."""

from __future__ import annotations

from decimal import Decimal as D

import ibis
import pandas as pd
import pytest

from planner.fleet_hours import Policy, build
from planner.states import Thresholds
from tests import fleet as t


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
    assert t.checks_of(found)["measured_more_than_billed"].count == 1


def test_states_of_a_part_of_an_hour_add_up_to_the_part():
    # Half an hour of 8 GPUs is 4 GPU-hours; 3 of 8 GPUs are free: 4 x 3/8 = 1.5.
    readings = t.node_readings(gpus=5) + t.node_readings(gpus=8, **t.idle())[5:]
    found = t.fleet([t.charge(hours=0.5)], readings)
    assert t.by_state(found.hours) == {"busy": D("2.5"), "free": D("1.5")}
    assert "measured_more_than_billed" not in t.checks_of(found)


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
    assert t.checks_of(found)["ambiguous_instance"].count == 8


def test_telemetry_of_an_instance_that_is_on_no_bill_is_told_and_not_counted():
    found = t.fleet([t.charge()], t.node_readings() + t.node_readings(instance_id="i-2"))
    assert t.by_state(found.hours) == {"busy": 8}
    assert t.checks_of(found)["measured_not_billed"].count == 8


def test_telemetry_in_an_hour_that_is_on_no_bill_is_told_and_not_counted():
    bill = [t.charge(start=0), t.charge(start=2)]
    found = t.fleet(bill, [r for h in range(3) for r in t.node_readings(h)])
    assert t.by_state(found.hours) == {"busy": 16}
    assert t.checks_of(found)["measured_not_billed"].count == 8


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
    assert t.checks_of(found)["no_price"].severity == "error"


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


def test_team_and_user_come_from_telemetry_and_the_team_else_from_tags():
    readings = t.node_readings(gpus=4, user="ana", team="vision")
    found = t.fleet([t.charge(tags='{"user:Team": "research"}')], readings)
    owners = found.hours.groupby(["team", "user"], dropna=False)["gpu_hours"].sum()
    assert owners.to_dict()[("vision", "ana")] == 4
    assert found.hours.loc[found.hours["user"].isna(), "team"].tolist() == ["research"]


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
