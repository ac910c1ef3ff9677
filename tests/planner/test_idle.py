"""Idle dollars: what they are a year, and which of them can be had back."""

from __future__ import annotations

from decimal import Decimal as D

import pytest

from data.errors import UsageError
from planner.alert_rules import Rule, evaluate
from planner.idle import by_bucket, idle_document, idle_rows, idle_table
from planner.patterns import idle_patterns
from tests import fleet as t


@pytest.fixture(scope="module")
def four_nodes():
    """Four hours of: a free node on demand, a free reserved node, a half busy node, a dark node."""
    names = ("spare", "paid", "mixed", "dark")
    extra = {
        "paid": {"purchase_option": "reserved", "commitment_id": "ri-1", "effective_cost": D(60)},
    }
    bill = [t.charge(name, start=h, **extra.get(name, {})) for name in names for h in range(4)]
    readings = []
    for h in range(4):
        readings += t.node_readings(h, instance_id="spare", **t.idle())
        readings += t.node_readings(h, instance_id="paid", **t.idle())
        readings += t.node_readings(h, instance_id="mixed", gpus=4)
        readings += t.node_readings(h, instance_id="mixed", **t.idle())[4:]
    return t.fleet(bill, readings, 4, commitments=t.owned({})).hours


def test_idle_dollars_stand_where_they_can_be_acted_on(four_nodes):
    assert by_bucket(four_nodes) == {
        "USD": {
            "stoppable": D("393.28"),  # 4 x 98.32
            "committed": D("240"),  # 4 x 60
            "partly_busy": D("196.64"),  # half of 4 x 98.32
            "work": D("196.64"),
            "unknown": D("393.28"),
        }
    }


def test_the_document_gives_a_year_and_months_as_exact_text(four_nodes):
    found = idle_document(four_nodes, ["workload_class"], 4)
    # Idle: 393.28 + 240 + 196.64 = 829.92 in 4 hours; x 8,760 / 4 = 1,817,524.8 a year.
    assert found["idle_cost_per_year"] == {"USD": "1817524.8"}
    # A month is 730 hours: 393.28 x 730 / 4 = 71,773.6; 240 x 182.5 = 43,800.
    assert found["stoppable_cost_per_month"] == {"USD": "71773.6"}
    assert found["committed_idle_cost_per_month"] == {"USD": "43800"}
    assert found["partly_busy_idle_cost_per_month"] == {"USD": "35886.8"}
    assert found["unknown_cost_per_month"] == {"USD": "71773.6"}
    assert found["undetermined_idle_cost_per_month"] == {"USD": "0"}
    assert found["rows"] == [
        {"workload_class": "training", "state": state, "gpu_hours": hours, "cost": cost,
         "currency": "USD"}
        for state, hours, cost in (
            ("busy", "16", "196.64"), ("free", "80", "829.92"), ("unknown", "32", "393.28"),
        )
    ]  # fmt: skip
    assert found["patterns"] == found["alerts"] == []


def test_rows_come_by_any_column_and_in_the_words_of_totals(four_nodes):
    rows = idle_rows(four_nodes, ["source", "day", "commitment_status"])
    assert {(row["commitment_status"], row["state"], row["gpu_hours"]) for row in rows} == {
        ("used", "free", "32"), (None, "busy", "16"), (None, "free", "48"), (None, "unknown", "32"),
    }  # fmt: skip
    assert {(row["source"], row["day"]) for row in rows} == {("aws", "2026-11-02")}
    with pytest.raises(UsageError, match="no column 'colour'"):
        idle_rows(four_nodes, ["colour"])


@pytest.mark.parametrize("column", ["dataset", "delivery_id", "team", "user", "node", "gpu_model"])
def test_rows_of_any_grouping_add_up_to_the_bill(four_nodes, column):
    rows = idle_rows(four_nodes, [column])
    assert sum(D(row["cost"]) for row in rows) == D("1419.84")  # 3 x 393.28 + 240
    assert sum(D(row["gpu_hours"]) for row in rows) == 128


def test_the_table_names_each_instance_its_cost_and_what_ends_it(four_nodes):
    found = idle_table(four_nodes).set_index("instance_id")
    assert found["cost"].to_dict() == {
        "spare": D("393.28"), "dark": D("393.28"), "paid": 240, "mixed": D("196.64"),
    }  # fmt: skip
    assert found["stoppable_cost"].to_dict() == {
        "spare": D("393.28"), "dark": 0, "paid": 0, "mixed": 0,
    }  # fmt: skip
    assert found.loc["spare", "action"] == "stop the instance"
    assert "paid for until 2027-01-01" in found.loc["paid", "action"]
    assert "measure this GPU" in found.loc["dark", "action"]
    assert "pack work" in found.loc["mixed", "action"]
    assert (found["since"] == t.hour(0)).all()


def test_since_is_the_start_of_the_newest_run():
    readings = [r for h in (0, 1, 4, 5) for r in t.node_readings(h, **t.idle())]
    readings += [r for h in (2, 3) for r in t.node_readings(h)]
    found = t.fleet([t.charge(start=h) for h in range(6)], readings, 6)
    assert idle_table(found.hours)["since"].tolist() == [t.hour(4)]


def test_a_short_pause_of_a_whole_node_is_not_stoppable():
    readings = t.node_readings(0) + [r for h in (1, 2) for r in t.node_readings(h, **t.held())]
    hours = t.fleet([t.charge(start=h) for h in range(3)], readings, 3).hours
    assert hours[["state", "stoppable"]].values.tolist() == [
        ["busy", False], ["idle_held", False], ["idle_held", True],
    ]  # fmt: skip


def test_a_node_with_an_unmeasured_gpu_is_not_stoppable():
    hours = t.fleet([t.charge()], t.node_readings(gpus=7, **t.idle()), 1).hours
    assert t.by_state(hours) == {"free": 7, "unknown": 1}
    assert not hours["stoppable"].any()


@pytest.mark.parametrize("option", ["reserved", "savings_plan", "capacity_block", "unknown"])
def test_what_is_committed_or_bought_nobody_knows_how_is_not_stoppable(option):
    hours = t.fleet([t.charge(purchase_option=option)], t.node_readings(**t.idle()), 1).hours
    bucket = "undetermined" if option == "unknown" else "committed"
    assert by_bucket(hours) == {"USD": {bucket: D("98.32")}}


def test_currencies_are_never_added():
    bill = [t.charge(), t.charge("i-2", currency="NOK", effective_cost=D(1000))]
    readings = t.node_readings(**t.idle()) + t.node_readings(instance_id="i-2", **t.idle())
    found = idle_document(t.fleet(bill, readings, 1).hours, [], 1)
    assert found["idle_cost_per_year"] == {"NOK": "8760000", "USD": "861283.2"}


def test_hours_without_a_price_are_told_and_cost_nothing_known():
    hours = t.fleet([], t.node_readings(cloud="onprem", **t.idle()), 1).hours
    found = idle_document(hours, ["cloud"], 1)
    assert found["rows"][0]["cost"] is None
    assert found["idle_cost_per_year"] == {}
    assert found["unpriced_idle_gpu_hours"] == "8"
    assert idle_table(hours)["cost"].isna().all()


def test_an_empty_fleet_has_an_empty_document():
    empty = t.fleet([], [], 1).hours
    assert idle_document(empty, ["cloud"], 0)["rows"] == []
    assert not len(idle_table(empty))
    assert idle_patterns(empty, 24) == []


def test_nights_and_weekends_are_patterns_and_each_hour_counts_once():
    # Friday to Sunday: busy 7-20 on Friday, free else; 4 + 7 = 11 night hours, 48 of weekend.
    friday = 4 * 24
    bill = [t.charge(start=friday + h, gpus=1, effective_cost=D(4)) for h in range(72)]
    readings = [t.reading("g", friday + h, **({} if 7 <= h < 20 else t.idle())) for h in range(72)]
    hours = t.fleet(bill, readings, friday + 72).hours
    found = {row["kind"]: row for row in idle_patterns(hours, 72)}
    assert set(found) == {"night", "weekend"}
    assert (found["night"]["gpu_hours"], found["weekend"]["gpu_hours"]) == ("11", "48")
    # 48 x 4 = 192 in 72 hours: x 730 / 72 = 1,946.67 a month.
    assert round(D(found["weekend"]["cost_per_month"]), 2) == D("1946.67")


def alerts(fleet, hours, **rule):
    return [
        (row.state, row.since, row.cost)
        for row in evaluate(fleet, [Rule("idle-node", **rule)], t.hour(hours))
    ]


@pytest.fixture(scope="module")
def paused():
    """One node of 98.32 an hour: busy, then free for hours 2, 3 and 4, then busy until 8."""
    readings = [r for h in range(8) for r in t.node_readings(h, **(t.idle() if 2 <= h < 5 else {}))]
    return t.fleet([t.charge(start=h) for h in range(8)], readings, 8).hours


def test_an_alert_fires_while_the_run_lasts_and_resolves_after_it(paused):
    until_four = paused[paused["hour_start"] < t.hour(4)]
    assert alerts(until_four, 4) == [("firing", t.hour(2), D("196.64"))]
    assert alerts(paused, 8) == [("resolved", t.hour(2), D("294.96"))]
    assert alerts(paused, 8, cooldown_minutes=60) == []


def test_an_alert_needs_its_duration_and_its_dollars(paused):
    until_four = paused[paused["hour_start"] < t.hour(4)]
    assert alerts(until_four, 4, for_minutes=121) == []
    assert alerts(until_four, 4, for_minutes=120, min_usd=D("196.64"))
    assert alerts(until_four, 4, min_usd=D("196.65")) == []


def test_an_alert_looks_at_its_scope_and_states(paused):
    until_four = paused[paused["hour_start"] < t.hour(4)]
    assert alerts(until_four, 4, scope={"workload_class": ("train*",), "cloud": ("aws",)})
    assert alerts(until_four, 4, scope={"workload_class": ("batch",)}) == []
    assert alerts(until_four, 4, states=("unknown",)) == []


def test_one_busy_gpu_keeps_a_node_from_firing(four_nodes):
    rows = evaluate(four_nodes, [Rule("idle-node")], t.hour(4))
    assert [row.scope.rsplit("/", 1)[1] for row in rows] == ["paid", "spare"]
    assert rows[1].as_json() == {
        "rule": "idle-node", "scope": "aws/111122223333/spare", "since": "2026-11-02T00:00:00Z",
        "until": "2026-11-02T04:00:00Z", "cost": "393.28", "currency": "USD", "state": "firing",
    }  # fmt: skip
