"""Quotas of the configuration as limits of the optimiser's problem.

What is bought by the hour today fits the quotas of today, whatever the file says: a stated limit
below today's peak is raised to it, and said. So no stage of the savings is short of its own past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.problem import Quota, QuotaUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.assemble import Need
    from planner.settings import QuotaRule
    from planner.supply import Supply, SupplyOffer

    Array = npt.NDArray[np.float64]


def quotas_from(
    rules: Sequence[QuotaRule], needs: Sequence[Need], supply: Supply
) -> tuple[tuple[Quota, ...], tuple[str, ...]]:
    """The quotas that can be counted, in the order of the file, and what to say of the others."""
    found: list[Quota] = []
    notes: list[str] = []
    for rule in rules:
        name = f"the quota of {rule.cloud} {rule.region}"
        here = [
            o for o in supply.offers.values() if (o.cloud, o.region) == (rule.cloud, rule.region)
        ]
        silent = sorted(o.instance_type for o in here if o.vcpus is None)
        if not here:
            notes.append(f"{name} limits nothing: no machine type of the plan is offered there")
            continue
        if rule.vcpus is not None and silent:
            notes.append(f"{name} is left out: the vCPUs of {', '.join(silent)} are not known")
            continue
        uses = tuple(QuotaUse(use) for use in rule.uses)
        stated = Quota(rule.cloud, rule.region, rule.gpus, rule.vcpus, uses)
        today = _peak(stated, here, needs, supply)
        if today > stated.limit:
            notes.append(
                f"{name} ({stated.limit:g} {stated.unit}) is below the {today:,.0f} {stated.unit} "
                "that ran there at once: these are taken as the limit"
            )
        limit = max(today, stated.limit)
        in_gpus = stated.vcpus is None
        found.append(
            Quota(
                rule.cloud,
                rule.region,
                limit if in_gpus else None,
                None if in_gpus else limit,
                uses,
            )
        )
    return tuple(found), tuple(notes)


def _peak(
    quota: Quota, here: Sequence[SupplyOffer], needs: Sequence[Need], supply: Supply
) -> float:
    """The most bought by the hour at once in the window, in the unit of the quota."""
    total: Array | float = 0.0
    for offer in here:
        per_gpu = 1.0 if quota.vcpus is None else (offer.vcpus or 0) / offer.gpus
        if QuotaUse.ON_DEMAND in quota.uses:
            owned = sum(one.gpus for one in supply.owned if one.offer == offer.id)
            firm = sum((need.firm[offer.id] for need in needs if offer.id in need.firm), 0.0)
            total = total + per_gpu * np.maximum(firm - owned, 0.0)
        if QuotaUse.SPOT in quota.uses:
            for need in needs:
                if offer.id in need.spot:
                    total = total + per_gpu * need.spot[offer.id] / need.throughput
    return float(np.max(total))
