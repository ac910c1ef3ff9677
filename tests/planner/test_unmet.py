"""Demand that the hours do not show: what queued, what was full, and what a plan makes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from data.frames import conform, empty
from data.schema import JOBS, QUALITY, WAITING
from planner.assemble import Need
from planner.full_hours import Place, bounded, full_owned, full_quotas, ran_of
from planner.future import history_of
from planner.planning import NightInputs, NightPlan, plan_night
from planner.settings import QuotaRule, Settings
from planner.supply import Owned, Supply, SupplyOffer
from planner.waiting import waiting_gpus
from reports.recommendations import report_markdown
from reports.tables import Tables
from tests import bills

if TYPE_CHECKING:
    from collections.abc import Iterable

EAST = "aws/us-east-1/p5.48xlarge"
WEST = "aws/us-west-2/p5.48xlarge"
QUOTA = {"cloud": "aws", "region": "us-east-1", "gpus": 16}


def hours(count: int) -> pd.DatetimeIndex:
    return pd.date_range(bills.START, periods=count, freq="h", unit="us")


def need(
    firm: dict[str, list[float]],
    spot: dict[str, list[float]] | None = None,
    name: str = "training",
    family: str = "H100",
) -> Need:
    return Need(
        workload_class=name, gpu_family=family,
        firm={offer: np.array(series) for offer, series in firm.items()},
        spot={offer: np.array(series) for offer, series in (spot or {}).items()},
        anywhere=(EAST,), may_move=False, may_retype=False, interruptible=bool(spot),
        min_firm_share=0.25, throughput=0.9,
    )  # fmt: skip


def waiting(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Rows of hour, class, GPU family and GPUs."""
    made = [
        {"unit": "u", "hour_start": bills.START + timedelta(hours=hour), "class": name,
         "gpu_family": family, "gpus": gpus, "export_id": "w", "source_row_no": number}
        for number, (hour, name, family, gpus) in enumerate(rows, start=1)
    ]  # fmt: skip
    return conform(pd.DataFrame(made, columns=WAITING.names), WAITING)


def jobs(*rows: dict[str, Any]) -> pd.DataFrame:
    plain = {"unit": "u", "class": "training", "gpus": 8.0, "hours": 2.0, "export_id": "j"}
    made = [{**plain, "id": str(n), "source_row_no": n, **row} for n, row in enumerate(rows, 1)]
    return conform(pd.DataFrame(made, columns=JOBS.names), JOBS)


def offer(name: str, on_demand: float | None = 6.88, vcpus: int | None = 192) -> SupplyOffer:
    cloud, region, kind = name.split("/")
    return SupplyOffer(name, cloud, region, kind, "H100", 8, on_demand, None, (), None,
                       False, vcpus)  # fmt: skip


def supply(*offers: SupplyOffer, owned: float = 0.0) -> Supply:
    held = (Owned("ri-1", offers[0].id, owned, 9, 0.0, 0.0),) if owned else ()
    return Supply({one.id: one for one in offers}, held)


def bill(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return bills.as_numbers(bills.fleet(*parts))


def rule(**more: Any) -> QuotaRule:
    return QuotaRule.model_validate({**QUOTA, **more})


def test_rows_of_one_hour_add_up_and_a_row_without_family_is_divided_by_what_ran():
    """Training ran on 12 H100 and 4 A100: of 8 GPUs waited for, 6 and 2. No row is no reading."""
    needs = [need({EAST: [12.0] * 4}), need({EAST: [4.0] * 4}, family="A100")]
    rows = waiting((0, "training", None, 5), (0, "training", None, 3), (1, "training", "A100", 2),
                   (2, "training", "H100", 0), (99, "training", None, 7))  # fmt: skip
    found = waiting_gpus(rows, empty(JOBS), needs, hours(4))
    assert found.gpus.keys() == {"training|A100", "training|H100"}
    np.testing.assert_allclose(found.gpus["training|H100"], [6, np.nan, 0, np.nan])
    np.testing.assert_allclose(found.gpus["training|A100"], [2, 2, np.nan, np.nan])
    assert (found.notes, found.warnings) == ((), ())


def test_a_job_that_waits_counts_for_as_long_as_it_would_have_run():
    """Released at 1:30 for two hours: half of hours 1 and 3, all of hour 2; others do not."""
    start = bills.START + timedelta(hours=1.5)
    rows = jobs(
        {"release": start.isoformat()},
        {"release": bills.START.isoformat(), "start": start.isoformat()},
        {"release": "3"},
        {"release": (bills.START + timedelta(days=9)).isoformat()},
        {"release": bills.START.isoformat(), "class": "batch", "gpus": 4.0},
    )
    needs = [need({EAST: [8.0] * 5}), need({EAST: [1.0] * 5}, name="batch")]
    found = waiting_gpus(waiting((4, "batch", None, 1)), rows, needs, hours(5))
    np.testing.assert_allclose(found.gpus["training|H100"], [np.nan, 4, 8, 4, np.nan])
    # The table tells what batch waited for, so its jobs are in that already.
    np.testing.assert_allclose(found.gpus["batch|H100"], [np.nan] * 4 + [1])
    assert found.notes == (
        "queued jobs whose release is no UTC time are not counted as waiting: 1",
    )


def test_what_names_no_work_of_the_fleet_is_told_and_left_out():
    rows = waiting((0, "trainnig", None, 5), (1, "training", "B200", 3))
    found = waiting_gpus(rows, empty(JOBS), [need({EAST: [8.0] * 2})], hours(2))
    assert not found.gpus
    assert found.warnings == (
        "3 GPU-hours that jobs of class training waited for are left out: nothing of it ran on "
        "B200 in the window",
        "5 GPU-hours that jobs of class trainnig waited for are left out: nothing of it ran in "
        "the window; did you mean training? known: training",
    )


@pytest.mark.parametrize(
    ("quota", "full"),
    [
        pytest.param({}, [False, True, False], id="one more machine of 8 fits 16 beside 8"),
        pytest.param({"gpus": 23}, [False, True, False], id="but not 23 beside 16"),
        pytest.param({"gpus": 24}, [False, False, False], id="it fits 24"),
        pytest.param({"gpus": 15}, None, id="a limit below what ran did not hold"),
        pytest.param({"gpus": None, "vcpus": 384}, [False, True, False], id="two machines"),
        pytest.param({"uses": ("spot",)}, None, id="nothing of that use ran"),
        pytest.param({"region": "eu-west-1"}, None, id="nothing is there"),
    ],
)
def test_a_quota_is_full_where_no_further_machine_fits(quota, full):
    """8 GPUs on demand in hours 0 to 2, as many under a savings plan in hour 1."""
    rows = bill(
        bills.node_hours("i-0", range(3)),
        bills.node_hours("i-1", range(1, 2), purchase_option="savings_plan"),
        bills.node_hours("i-2", range(3), purchase_option="reserved", commitment_id="ri-1"),
    )
    stated = rule(**quota)
    if quota.get("vcpus"):
        stated = QuotaRule.model_validate({**QUOTA, "vcpus": 384} | {"gpus": None})
    found = full_quotas([stated], ran_of(rows, hours(3)), supply(offer(EAST)))
    assert [one.hours.tolist() for one in found] == ([] if full is None else [full])


def test_what_is_owned_is_full_where_nothing_more_is_sold_or_somebody_waits():
    needs = [need({EAST: [16.0, 16.0, 8.0]}), need({EAST: [0.0, 0.0, 8.0]}, name="batch")]
    waits = {"batch|H100": np.array([np.nan, 4.0, np.nan])}
    own = full_owned(needs, {}, supply(offer(EAST, on_demand=None), owned=16))
    assert [one.hours.tolist() for one in own] == [[True, True, True]]
    sold = full_owned(needs, waits, supply(offer(EAST), owned=16))
    assert [one.hours.tolist() for one in sold] == [[False, True, False]]
    assert not full_owned(needs, waits, supply(offer(EAST)))


def test_only_who_had_no_idle_gpu_there_and_of_whom_nothing_else_is_known_is_bounded():
    """Full in all four hours. Idle GPUs of its own in hour 1, a reading in hour 2, none in 3."""
    rows = bill(
        bills.node_hours("i-0", range(4)),
        bills.node_hours("i-1", range(1, 2), needed=7),
        bills.node_hours("i-2", range(4), needed=0, workload_class="batch"),
    )
    ran = ran_of(rows, hours(4))
    places = [Place("all of it", frozenset({EAST}), np.ones(4, dtype=bool))]
    training = need({EAST: [8.0, 15.0, 8.0, 0.0]})
    waits = np.array([np.nan, np.nan, 0.0, np.nan])
    assert bounded(training, places, ran, waits)[EAST].tolist() == [True, False, False, False]
    assert bounded(training, places, ran, None)[EAST].tolist() == [True, False, True, False]
    assert bounded(training, [], ran, None) == {}


def test_a_history_tells_what_waited_and_where_most_of_a_class_was_full():
    """12 in the full east beside 4, then 16 in the west: of 12 + 16 the full 12 are too few."""
    full = np.array([True, True, False])
    one = need({EAST: [12.0, 12.0, 12.0], WEST: [4.0, 16.0, 0.0]})
    made = Need(**{name: getattr(one, name) for name in one.__slots__}
                | {"full": {EAST: full}, "waited": {WEST: np.array([0.0, 0.0, 5.0])}})  # fmt: skip
    history = history_of([made], hours(3))
    assert history.firm[:, 0].tolist() == [16, 28, 17]
    assert history.at_capacity is not None
    assert history.at_capacity[:, 0].tolist() == [True, False, False]
    assert history_of([one], hours(3)).at_capacity is None


PRICES = (bills.price("on_demand", 6.88), bills.price("reserved_1y", 4.30))


def night_of(
    days: int, busy: Iterable[int] | None = None, settings: dict[str, Any] | None = None,
    **more: pd.DataFrame,
) -> NightPlan:  # fmt: skip
    """A night over nodes i-0 and i-1 of training, which are there in the `busy` hours (all)."""
    window = bills.window(days)
    running = range(days * 24) if busy is None else busy
    rows = [bills.node_hours(f"i-{n}", range(h, h + 1)) for h in running for n in (0, 1)]
    given = NightInputs(
        as_of=window.end.date(), window=window, covered=window.grid(), fleet=bills.fleet(*rows),
        offers=bills.offers(*PRICES), shapes=bills.shapes(), commitments=bills.commitments(),
        quality=empty(QUALITY), settings=Settings.model_validate(settings or {}),
        deliveries=(), freshness=(), has_billing=True, has_utilization=True, **more,
    )  # fmt: skip
    return plan_night(given)


def report_of(made: NightPlan) -> str:
    tables = Tables(made.recommendations, made.commitments, made.limits, made.idle, made.quality)
    return report_markdown(made.plan, tables)


def test_gpus_waited_for_are_planned_for_and_change_nothing_of_today():
    """16 GPUs ran and 8 were waited for in every hour of three weeks: 24 are planned for."""
    queue = waiting(*((hour, "training", "H100", 8) for hour in range(21 * 24)))
    made, plain = night_of(21, waiting=queue), night_of(21)
    (row,) = made.plan.summary.reasons.unmet
    assert (row.waited_hours, row.waiting_gpu_hours, row.recorded_gpus) == (504, 4032.0, 16.0)
    assert (row.full_hours, row.censored_hours) == (0, 0)
    assert row.planned_more == pytest.approx(8.0, abs=0.1)
    assert (row.planned_gpus, row.recent_waiting) == (pytest.approx(24.0, abs=0.1), 8.0)
    (step,) = made.plan.summary.reasons.ladder
    assert step.needed == 24.0
    bill, before = made.plan.summary.bill, plain.plan.summary.bill
    assert bill.today_per_month == before.today_per_month
    # 8 GPUs more, at 4.30 reserved or 6.88 on demand, over 730 hours.
    assert 8 * 4.3 * 730 <= bill.plan_per_month - before.plan_per_month + 1 <= 8 * 6.88 * 730
    rows = made.demand_hours
    seen, ahead = (rows[rows["kind"] == kind] for kind in ("observed", "forecast"))
    assert seen[["needed_gpus", "waiting_gpus"]].to_numpy().tolist() == [[16, 8]] * 504
    assert not seen["at_capacity"].any()
    # Three weeks are known, so three are forecast, from the hour after the last one on.
    assert list(ahead["hour_start"]) == list(hours(1008)[504:])
    assert ahead["p50_gpus"].to_numpy() == pytest.approx(24.0, rel=0.05)
    assert (ahead["p10_gpus"] <= ahead["p50_gpus"]).all()
    assert (ahead["p50_gpus"] <= ahead["p90_gpus"]).all()
    text = report_of(made)
    assert "| training | H100 | 504 | 0 | 0 | 504 | 4,032 | 16 | 8 | 24 | 8 |" in text
    words = "The planned year needs 24 GPUs with it and 16 without: 8 GPUs waited on the mean"
    assert words in text
    assert plain.plan.summary.reasons.unmet == ()
    assert "Demand that the hours do not show" not in report_of(plain)


def test_a_pool_that_was_always_full_is_planned_for_as_it_ran():
    """Every hour is a lower bound and none tells how much was missing: nothing is made up."""
    made = night_of(21, settings={"quotas": (QUOTA,)})
    (row,) = made.plan.summary.reasons.unmet
    assert (row.full_hours, row.censored_hours, row.hours) == (504, 504, 504)
    assert row.full_places == ("the quota of aws us-east-1 (16 GPUs)",)
    assert row.planned_more == pytest.approx(0.0, abs=1e-6)
    assert made.demand_hours["at_capacity"].dropna().tolist() == [True] * 504
    assert made.demand_hours["waiting_gpus"].isna().all()
    assert any("a pool was full" in note for note in made.plan.summary.notes)
    assert "changes the planned year's need by less than a tenth of a GPU" in report_of(made)


def test_below_the_least_history_what_queued_is_told_and_left_out():
    queue = waiting((5, "training", None, 8), (6, "nobody", None, 8))
    made = night_of(3, waiting=queue)
    (row,) = made.plan.summary.reasons.unmet
    assert row.planned_more is None
    assert set(made.demand_hours["kind"]) == {"observed"}
    assert made.demand_hours["waiting_gpus"].dropna().tolist() == [8.0]
    assert made.plan.summary.bill.growth_per_month == 0
    assert any("what queued jobs waited for" in note for note in made.plan.summary.notes)
    assert any("class nobody" in text for text in made.warnings)
    assert "too short to plan ahead, so the plan leaves it out" in report_of(made)
