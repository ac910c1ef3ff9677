"""Two nights over one bill: a half-delivered day, and a month that is restated between them."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from decimal import Decimal as D
from typing import TYPE_CHECKING

import pytest

from data.hours import Window
from data.plan import Plan
from data.store import OptionTotals, UnitVersion
from planner.lineage import lineage, restated_since, with_advice
from tests import fleet as t
from tests.exports import json_lines
from tests.program import Finished, call
from tests.reports.night import plan as made_plan

if TYPE_CHECKING:
    from pathlib import Path


def gcp_day(day: int, cost: float, credit: float) -> dict:
    start = t.DAY + timedelta(days=day)
    machine = {"key": "compute.googleapis.com/machine_spec", "value": "a3-highgpu-1g"}
    return {
        "billing_account_id": "01A2B3-C4D5E6-F70819",
        "invoice": {"month": "202611"},
        "cost_type": "regular",
        "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
        "sku": {"id": "G", "description": "Nvidia H100 80GB GPU running in Americas"},
        "usage_start_time": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "usage_end_time": f"{start + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}",
        "project": {"id": "p"},
        "labels": [],
        "system_labels": [machine],
        "location": {"location": "us-central1", "region": "us-central1", "zone": "us-central1-a"},
        "resource": {"name": "vm", "global_name": "//compute/vm"},
        "usage": {
            "amount_in_pricing_units": 24 * cost / 100, "pricing_unit": "hour",
            "amount": 86400 * cost / 100, "unit": "seconds",
        },
        "cost": cost,
        "currency": "USD",
        "credits": [{"name": "c", "amount": credit, "type": "SUSTAINED_USAGE_DISCOUNT"}],
    }  # fmt: skip


def bill(path: Path, *costs: float) -> Path:
    """Days of that cost before a credit of a fifth of it, of one machine each."""
    return json_lines(path, [gcp_day(day, cost, -cost / 5) for day, cost in enumerate(costs)])


def night(folder: Path, day: str) -> Finished:
    words = ["--store", folder / "store", "--date", day, "--out", folder / "out", "--json"]
    answer = call("plan", *words)
    assert answer.code in (0, 4), answer.out
    return answer


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Finished]]:
    """The night of 5 November, and the next one after the first day became dearer."""
    folder = tmp_path_factory.mktemp("nights")
    load = ["load", "--store", folder / "store", "--json"]
    assert call(*load, bill(folder / "first.json", 100, 100, 66)).code == 0
    first = night(folder, "2026-11-05")
    assert call(*load, bill(folder / "second.json", 110, 100, 100, 100)).code == 0
    return folder, [first, night(folder, "2026-11-06")]


def quality(folder: Path, day: str) -> dict[str, dict[str, str]]:
    with (folder / "out" / day / "quality.csv").open(encoding="utf-8", newline="") as file:
        return {row["check"]: row for row in csv.DictReader(file)}


def test_a_half_delivered_day_feeds_no_plan_and_is_told(nights):
    folder, (first, second) = nights
    summary = first.json["summary"]
    assert (summary["window_end"], summary["hours_observed"]) == ("2026-11-04T00:00:00Z", 48)
    # 80 a day: 160 in 48 hours is 160 x 730 / 48 = 2,433.33 a month, and not that of 212.8 in 72.
    assert summary["bill"]["today_per_month"] == "2433.33"
    checks = quality(folder, "2026-11-05")
    assert "2026-11-04 has 66% of the GPU-hours" in checks["incomplete_tail"]["detail"]
    assert checks["late_tail"]["count"] == "24"
    assert second.json["summary"]["window_end"] == "2026-11-06T00:00:00Z"
    # 88 + 80 + 80 + 80
    (row,) = call("totals", "--by", "source", "--json", "--store", folder / "store").json["rows"]
    assert row["effective_cost"] == "328"


def test_the_next_report_tells_what_was_restated_and_which_advice_rested_on_it(nights):
    folder, (first, second) = nights
    assert first.json["summary"]["restated"] == []
    (row,) = second.json["summary"]["restated"]
    # The last night knew 80 + 80 + 52.8 = 212.8; the same three days are 88 + 80 + 80 now.
    assert (row["before"], row["after"], row["period"]) == ("212.8", "248", "2026-11")
    assert [(one["purchase_option"], one["cost"]) for one in row["options"]] == [
        ("on_demand", "35.2")
    ]
    before = json.loads((folder / "out" / "2026-11-05" / "plan.json").read_text())
    (rested,) = before["lineage"]
    assert (rested["cloud"], rested["deliveries"]) == ("gcp", before["inputs"])
    assert row["was"] in rested["deliveries"]
    assert row["rested"] == rested["recommendations"]
    report = (folder / "out" / "2026-11-06" / "report.md").read_text()
    assert "## Restated since the night of 2026-11-05" in report
    place = "November 2026 of gcp 01A2B3-C4D5E6-F70819 (detailed)"
    assert f"{place} was restated from $213 to $248 (on_demand +$35.20" in report
    assert "Restated" not in (folder / "out" / "2026-11-05" / "report.md").read_text()
    assert quality(folder, "2026-11-06")["restated_period"]["amount"] == "35.2"


def version(delivery: str, cost: str, same: str | None = None) -> UnitVersion:
    def totals(amount: str) -> tuple[OptionTotals, ...]:
        return (OptionTotals("reserved", "USD", 1, None, D(amount)),)

    return UnitVersion((delivery,), "a.csv", totals(cost),
                       same_hours=None if same is None else totals(same))  # fmt: skip


def test_a_restatement_over_several_deliveries_adds_up_and_names_the_advice_that_is_gone():
    # 100; then 90 of it and 20 more; then 85 of those 110 and 5 more: the 100 lost 10 and 25.
    unit = "aws|1111|cur|2026-10"
    kept = {unit: (version("a", "100"), version("b", "110", "90"), version("c", "90", "85"))}
    last = Window(t.hour(-48), t.hour(0))
    made = lineage({unit: "a", "user|all|prices|all": "p", "aws|1111|cur|2026-01": "old"}, last)
    advice = [{"cloud": "aws", "id": "r-1"}, {"cloud": "aws", "id": "r-2"}]
    rested = with_advice(made, advice)
    assert [(one.cloud, one.deliveries) for one in rested] == [("aws", ("a",))]
    before = Plan("2026-11-02", "", "", ("a",), (), made_plan().summary, lineage=rested)
    (row,) = restated_since(before, kept, ["r-2"])
    assert (row.before, row.after, row.was, row.now) == (100, 65, "a", "c")
    assert (row.rested, row.gone) == (("r-1", "r-2"), ("r-1",))
    # A plan of an older version names its inputs alone, and a plan of today's data nothing.
    old = Plan("2026-11-02", "", "", ("b", "p"), (), made_plan().summary)
    (row,) = restated_since(old, kept, [])
    assert (row.before, row.after, row.rested) == (110, 85, ())
    assert restated_since(Plan("", "", "", ("c",), (), made_plan().summary), kept, []) == ()
    assert Plan.from_text(before.to_text()) == before
