"""What a workload class is: which rows belong to it, what it bears, where it may run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.settings.base import (
    Count,
    Name,
    Names,
    NotNegative,
    Percent,
    Positive,
    Section,
    Share,
)

UNCLASSIFIED = "unclassified"


class MatchRule(Section):
    """Conditions on a row: all that are stated must hold, any value of one is enough.

    Values may hold `*` (any text) and `?` (any one character); letter case does not count. An
    empty list is no condition. Tag keys are also found under the prefixes `user:` and `user_`.
    """

    tags: dict[Name, Names] = Field(default_factory=dict)
    account: Names = ()
    cloud: Names = ()
    region: Names = ()
    instance_type: Names = ()
    resource_name: Names = ()
    resource_id: Names = ()
    service: Names = ()
    namespace: Names = ()
    node: Names = ()


class OfferRule(Section):
    """Which offers suit a class; what is not stated is no limit.

    `gpu_memory_gib` is the least memory of one GPU. `interconnect` is the least link between the
    GPUs of one machine (none < pcie < nvlink < nvswitch). Without `gpu_models` a class stays on
    the GPU family that it ran on.
    """

    gpu_memory_gib: NotNegative | None = None
    interconnect: Literal["none", "pcie", "nvlink", "nvswitch"] | None = None
    clouds: Names = ()
    regions: Names = ()
    gpu_models: Names = ()
    instance_types: Names = ()


class WorkloadClass(Section):
    """One class of work. Times are in minutes or hours as the name says; shares are 0 to 1.

    `busy_util_percent`, `busy_sm_active` and `memory_held_share`, where stated, outrank
    `[thresholds]` for the hours of this class.
    """

    name: Name
    match: MatchRule = MatchRule()
    interruptible: bool = False
    max_wait_hours: NotNegative = 0.0
    min_firm_share: Share = 0.0
    spot_max_share_per_offer: Share | None = None
    checkpoint_minutes: NotNegative = 0.0
    restart_minutes: NotNegative = 10.0
    gang_gpus: Count | None = None
    idle_after_minutes: NotNegative = 30.0
    shortage_usd_per_gpu_hour: Positive | None = None
    busy_util_percent: Percent | None = None
    busy_sm_active: Share | None = None
    memory_held_share: Share | None = None
    team: str | None = None
    owner: str | None = None
    offers: OfferRule = OfferRule()
