"""Which class a stage of the savings moves where, and what each of them saves by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from planner.assemble import Stage, base_name

if TYPE_CHECKING:
    from planner.supply import Supply
    from planner.waterfall import Solved, Waterfall

_SMALLEST = 0.005


def moved(kind: str, waterfall: Waterfall, supply: Supply) -> pd.DataFrame:
    """Class, offer, GPU-hours a month that the stage adds there, and the weight of the row.

    The weight is what the class saves by the stage (no less than nothing), shared over the offers
    that it gains hours on.
    """
    if kind == "use_idle_commitment":
        stage, before_cost = Stage.AS_IS, waterfall.at_book
        kinds, before = ["reserved"], waterfall.committed_now
    else:
        stage = Stage.SPOT if kind == "move_to_spot" else Stage.MOVE
        former = waterfall.stages[Stage(stage - 1)]
        kinds = ["spot"] if kind == "move_to_spot" else ["spot", "on_demand"]
        before_cost, before = class_costs(former, supply), _by_place(former, kinds)
    solved = waterfall.stages[stage]
    after_cost = class_costs(solved, supply)
    hours = _by_place(solved, kinds)
    added = hours - before.reindex(hours.index, fill_value=0.0)
    rows = added[added > _SMALLEST].rename("gpu_hours").reset_index()
    saved = {name: max(0.0, cost - after_cost.get(name, 0.0)) for name, cost in before_cost.items()}
    share = rows["gpu_hours"] / rows.groupby("class")["gpu_hours"].transform("sum")
    worth = [saved.get(name, 0.0) for name in rows["class"].tolist()]
    rows["weight"] = share * pd.Series(worth, index=rows.index, dtype=float)
    return rows[rows["weight"] > _SMALLEST].reset_index(drop=True)


def class_costs(solved: Solved, supply: Supply) -> dict[str, float]:
    """USD a month that each class pays by the hour: on demand and spot."""
    used = solved.used[solved.used["kind"].isin(["on_demand", "spot"])]
    costs: dict[str, float] = {}
    for row in used.itertuples(index=False):
        name, kind, hours = str(row[0]), str(row[2]), float(row[3])
        offer = supply.offers[base_name(str(row[1]))]
        price = (offer.on_demand if kind == "on_demand" else offer.spot) or 0.0
        need = base_name(name)
        costs[need] = costs.get(need, 0.0) + hours * price
    return costs


def _by_place(solved: Solved, kinds: list[str]) -> pd.Series:
    """GPU-hours a month by class and offer, of the kinds given."""
    used = solved.used[solved.used["kind"].isin(kinds)]
    named = pd.DataFrame(
        {
            "class": used["class"].map(base_name),
            "offer": used["offer"].map(base_name),
            "gpu_hours": used["gpu_hours"],
        }
    )
    return named.groupby(["class", "offer"], sort=True)["gpu_hours"].sum()
