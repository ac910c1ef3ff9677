"""The whole model of a problem, ready for a solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model import constraints
from planner.model.columns import Columns, columns
from planner.model.objective import minimise_cost

if TYPE_CHECKING:
    from planner.model.reductions import Reduced

CONSTRAINTS = (
    constraints.meet_demand,
    constraints.serve_deferrable,
    constraints.share_pool,
    constraints.cap_spot_share,
    constraints.cover_by_savings_plan,
    constraints.cap_quota,
    constraints.cap_availability,
    constraints.cap_upfront,
    constraints.cap_commitments,
    constraints.measure_scenario_cost,
    constraints.measure_excess,
)


def build(reduced: Reduced) -> Columns:
    """The variables with the objective and every constraint in place."""
    made = columns(reduced)
    minimise_cost(made)
    for constrain in CONSTRAINTS:
        constrain(made)
    return made
