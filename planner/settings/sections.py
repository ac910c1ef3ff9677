"""The plain sections: store, inputs, thresholds, prices, plan, quotas, guards, alerts."""

from __future__ import annotations

from datetime import date  # noqa: TC003  (pydantic reads it)
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, BeforeValidator, Field

from planner.settings.base import (
    Count,
    EnvName,
    Name,
    Names,
    NotNegative,
    Percent,
    Positive,
    Section,
    Share,
    Whole,
)


def _timezone(value: str) -> str:
    if value == "UTC" or not available_timezones():
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no time zone; use a name such as Europe/Oslo") from None
    return value


def _location(value: str) -> str:
    scheme, found, _ = value.partition("://")
    if found and scheme not in ("s3", "gs", "abfs"):
        raise ValueError("is no folder, and its scheme is none of s3, gs, abfs")
    return value


class StoreSettings(Section):
    """Where the store lies and what reads it. Without a path: a folder of the user's data."""

    path: Annotated[Name, AfterValidator(_location)] | None = None
    engine: Literal["duckdb", "spark"] = "duckdb"


class Inputs(Section):
    """Files kept by hand: owned commitments, agreements, budgets, invoices, queued jobs."""

    commitments: Name | None = None
    agreements: Name | None = None
    budgets: Name | None = None
    invoices: Name | None = None
    jobs: Name | None = None
    waiting: Name | None = None


class Thresholds(Section):
    """What a GPU must show to count as busy, or as held.

    Busy: kernels ran for more than `busy_util_percent` of the hour, or more than `busy_sm_active`
    of the multiprocessors were at work. Held: a process sits on the GPU, or more than
    `memory_held_share` of its memory is taken (a bare CUDA context of about 0.5 GiB is 0.6 % of
    80 GiB; a loaded model is far above 3 %). `max_bad_row_share`: more bad telemetry rows than
    this stop the run.
    """

    busy_util_percent: Percent = 5.0
    busy_sm_active: Share = 0.05
    memory_held_share: Share = 0.03
    max_bad_row_share: Share = 0.05


class ExchangeRate(Section):
    """Units of a currency for one US dollar, with the day on which that held."""

    per_usd: Positive
    as_of: date


class PriceSettings(Section):
    """How prices are judged.

    A price older than `max_age_days` is stale. A price per GPU-hour beyond `band_factor` times,
    or below 1 / `band_factor` of, the median of its GPU family and purchase option is rejected;
    so is a list price below `floor_share` of its machine type's median over regions.
    """

    max_age_days: Whole = 180
    overrides: Name | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    band_factor: Annotated[float, Field(gt=1)] = 4.0
    floor_share: Share = 0.6
    rates: dict[Annotated[str, Field(pattern=r"^[A-Z]{3}$")], ExchangeRate] = Field(
        default_factory=dict
    )


class Cvar(Section):
    """Weight of the risk term (`lambda`) and the share of futures it leaves out (`beta`)."""

    weight: NotNegative = Field(default=0.2, alias="lambda")
    beta: Annotated[float, Field(ge=0, lt=1)] = 0.9


class SettleHours(Section):
    """Hours before the end of a bill in which rows may still come, by cloud."""

    aws: Whole = 48
    gcp: Whole = 24
    azure: Whole = 48
    other: Whole = 24

    def of(self, cloud: str) -> int:
        """The hours of one cloud."""
        return {"aws": self.aws, "gcp": self.gcp, "azure": self.azure}.get(cloud, self.other)


def _of_every_cloud(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return dict.fromkeys(SettleHours.model_fields, value)
    return value


class PlanSettings(Section):
    """What a plan may do and how exact it must be.

    `history_days` of billed hours are read, and fewer than `min_history_days` give a warning.
    The days in the newest `settle_hours` of a bill (a number, or one for each cloud) count only
    where they look like the days before; the newest `tail_hours` never do.
    `spot_interruptions_per_hour` is an assumption, used with a class's checkpoint and restart
    times. `scenarios` ways in which demand may come are planned for; with one, the forecast alone.
    """

    horizon_days: Count = 365
    history_days: Count = 60
    min_history_days: Count = 14
    settle_hours: Annotated[SettleHours, BeforeValidator(_of_every_cloud)] = SettleHours()
    tail_hours: Whole = 0
    terms: Annotated[tuple[Literal["1y", "3y"], ...], Field()] = ("1y",)
    upfront_budget: NotNegative = 0.0
    spot_interruptions_per_hour: NotNegative = 0.1
    scenarios: Annotated[int, Field(ge=1, le=100)] = 6
    cvar: Cvar = Cvar()
    holidays: tuple[date, ...] = ()
    service_level: Annotated[float, Field(ge=0, lt=1)] | None = None
    tolerance: NotNegative = 0.001
    gap: NotNegative = 1e-4
    time_limit_seconds: Positive = 600.0
    solver: Literal["highs", "cbc"] = "highs"
    display_timezone: Annotated[str, AfterValidator(_timezone)] = "UTC"


class QuotaRule(Section):
    """The most that may be bought by the hour in one region, in GPUs or in vCPUs.

    `uses` are what counts: `on_demand` (with what savings plans cover), `spot`, or both.
    """

    cloud: Name
    region: Name
    gpus: NotNegative | None = None
    vcpus: NotNegative | None = None
    uses: Annotated[tuple[Literal["on_demand", "spot"], ...], Field(min_length=1)] = (
        "on_demand",
        "spot",
    )


class EventRule(Section):
    """Something known to come: a launch, a team that leaves, a project's end.

    From the day `from` until the day `until` (exclusive; without it, for good) the demand of a
    class (without one, of all) is multiplied by `factor`, and `gpus` are added. It happens with
    probability `chance`. A factor above a thousand, or more than a
    million GPUs, is taken for a slip of the pen.
    """

    name: Name
    workload_class: Name | None = Field(default=None, alias="class")
    from_date: date = Field(alias="from")
    until: date | None = None
    factor: Annotated[float, Field(ge=0, le=1000)] = 1.0
    gpus: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    chance: Share = 1.0


class Guards(Section):
    """What `apply` refuses: cuts beyond a share or a number, old plans, protected pools."""

    max_cut_share: Share = 0.2
    max_cut_gpus: Whole = 64
    max_plan_age_hours: NotNegative = 36.0
    protected: Names = ()


State = Literal["busy", "idle_held", "free", "unknown"]


class AlertWhen(Section):
    """When an alert fires: these states, for so long, at no less than this cost in dollars."""

    state: Annotated[tuple[State, ...], Field(min_length=1)] = ("idle_held", "free")
    for_minutes: NotNegative = 30.0
    min_usd: NotNegative = 0.0
    workload_class: Names = ()
    cloud: Names = ()


class AlertRule(Section):
    """A threshold alert and the targets it goes to."""

    name: Name
    when: AlertWhen = AlertWhen()
    cooldown_minutes: NotNegative = 720.0
    to: Names = ()


class AlertTarget(Section):
    """Where alerts are sent; the address is a secret, so it comes by an environment variable."""

    kind: Literal["webhook"]
    url_env: EnvName
