"""Empty capacity reservations: those that nothing commits can be given back, the others not."""

from __future__ import annotations

from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pytest

from planner import session
from planner.idle import idle_document, idle_table, with_buckets
from planner.moves import moves
from planner.patterns import idle_patterns
from tests import bills
from tests.planner.test_rightsizing import advise
from tests.planner.test_waterfall import ON_DEMAND, work_out
from tests.traps.books import AWS, Books, at, changed

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "id,cloud,account,kind,instance_type,count,region,start,end,payment,usd_per_instance_hour\n"
TERM = "p5.48xlarge,1,us-east-1,2026-11-01,2026-12-01,all_upfront,98.32\n"


def empty(name: str, kind: str = "ODCR") -> dict[str, Any]:
    """An hour of a reservation of one node in which nothing ran, at the price on demand: 98.32."""
    arn = f"arn:aws:ec2:us-east-1:000033334444:capacity-reservation/{name}"
    return {
        "line_item_usage_type": "USE1-UnusedBox:p5.48xlarge", "line_item_resource_id": arn,
        "capacity_reservation_capacity_reservation_arn": arn,
        "capacity_reservation_capacity_reservation_status": "Unused",
        "capacity_reservation_capacity_reservation_type": kind,
    }  # fmt: skip


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    """Two hours of each: a plain reservation, a block, one with a term, a plain one in the table.

    `i-1` runs in one of them, so that its hours are use and no emptiness.
    """
    folder: Path = tmp_path_factory.mktemp("empty")
    block = empty("cr-block", "EC2 Capacity Block for ML")
    cases = (empty("cr-plain"), block, empty("cr-term"), empty("cr-known"))
    rows = [{**case, **at(hour)} for case in cases for hour in (3, 4)]
    (folder / "commitments.csv").write_text(
        HEAD
        + f"cr-term,aws,000033334444,owned,{TERM}"
        + f"cr-known,aws,000033334444,capacity_reservation,{TERM}"
    )
    made = Books(folder).load_rows(changed({**dict.fromkeys(block, ""), **AWS}, {}, at(4), *rows))
    return made.load(folder / "commitments.csv")


def test_only_a_reservation_that_nothing_commits_can_be_given_back(books: Books) -> None:
    rows = with_buckets(books.fleet(state="free"))
    told = {
        str(name).rsplit("/", 1)[-1]: (set(part["bucket"]), sum(part["cost"]))
        for name, part in rows.groupby("instance_id")
    }
    two = 2 * D("98.32")
    assert told == {
        "cr-plain": ({"stoppable"}, two), "cr-known": ({"stoppable"}, two),
        "cr-block": ({"committed"}, two), "cr-term": ({"committed"}, two),
    }  # fmt: skip


def test_idle_tells_what_can_be_cancelled_apart_from_what_can_only_be_filled(books: Books) -> None:
    # 2 hours seen: 2 reservations x 98.32 x 730 a month each way; use is neither.
    document = session.idle_answer(books.session(), ["cloud"])
    month = 2 * D("98.32") * 730
    for name in ("stoppable_cost_per_month", "committed_idle_cost_per_month"):
        assert D(document[name]["USD"]) == month
    patterns = {one["kind"]: one for one in document["patterns"]}
    assert set(patterns) == {"empty_reservation", "never_started"}
    assert all(D(one["cost_per_month"]) == month for one in patterns.values())
    assert "cancel" in patterns["empty_reservation"]["action"]
    actions = {
        str(row["instance_id"]).rsplit("/", 1)[-1]: row["action"]
        for row in idle_table(books.fleet(state="free")).to_dict("records")
    }
    assert "cancel" in actions["cr-plain"]
    assert "let it end" in actions["cr-block"]


def reservation(name: str, option: str = "on_demand", **more: Any) -> list[dict[str, Any]]:
    rows = bills.node_hours(
        f"commitment:{name}", range(24), needed=0, state="free", reason="unused_reservation",
        purchase_option=option, **more,
    )  # fmt: skip
    return [{**row, "gpu_hours": D(0)} for row in rows]


def test_what_nobody_knows_the_way_of_paying_of_is_neither_stoppable_nor_committed() -> None:
    fleet = bills.fleet(reservation("cr-1", option="unknown"))
    document = idle_document(fleet, ["cloud"], 24)
    month = D("6.88") * 8 * 730
    assert D(document["undetermined_idle_cost_per_month"]["USD"]) == month
    assert D(document["committed_idle_cost_per_month"].get("USD", 0)) == 0
    assert [one["kind"] for one in idle_patterns(fleet, 24)] == ["never_started"]


@pytest.mark.parametrize("count", [1, 2])
def test_the_plan_gives_empty_reservations_back_and_saves_what_they_cost(count: int) -> None:
    names = [f"arn:aws:ec2:us-east-1:1:capacity-reservation/cr-{n}" for n in range(count)]
    fleet = bills.fleet(
        bills.node_hours("i-busy", range(24)),
        *(reservation(name, stoppable=True) for name in names),
    )
    prices = bills.offers(ON_DEMAND)
    made = work_out(fleet, prices)
    each = 8 * 6.88 * 730
    # Today the node and the reservations; after, the node alone.
    assert made.steps.release == pytest.approx(count * each)
    assert made.steps.rightsize == pytest.approx(0, abs=1e-6)
    assert made.steps.plan == pytest.approx(each)
    rows = advise(fleet, prices, made)
    assert list(rows["kind"]) == ["release_idle"] * count
    assert set(rows["saving_per_month"]) == {D("40179.20")}  # 8 x 6.88 x 730
    assert sorted(rows["resource"]) == names
    action = "Cancel or shrink the capacity reservation cr-0 (p5.48xlarge)"
    assert rows.sort_values("resource").iloc[0]["action"] == action
    (move,) = moves(rows)
    assert move.title == action or move.title.startswith("Cancel or shrink 2 capacity")
    assert move.saving_per_month == count * D("40179.20")
