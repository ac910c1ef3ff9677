"""What a night decided: the frozen plan, its changes, and the figures its report is made of.

A plan is written as canonical JSON (sorted keys, money as text) with a checksum over it, so that
any later command can tell whether it was edited.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from data import money
from data.errors import DataError, UnsafePlan
from data.lineage import Lineage, Restated  # noqa: TC001  (pydantic reads them)
from data.reasons import Reasons, StageProof  # noqa: TC001  (pydantic reads them)
from data.risks import Risks  # noqa: TC001  (pydantic reads it)

FORMAT = "loadfactor-plan"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Change:
    """One proposed change of a scaling limit. `current` is None where the limit was not read."""

    pool: str
    kind: str
    cloud: str
    account: str
    region: str
    name: str
    unit: str
    field: str
    current: int | None
    proposed: int | None
    why: str
    saving_per_month: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class StateRow:
    """GPU-hours and cost of one state, over the observed window."""

    state: str
    gpu_hours: Decimal
    cost: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One workload class and GPU family over the observed window: GPU-hours by state, and need."""

    workload_class: str
    gpu_family: str
    billed: Decimal
    busy: Decimal
    idle_held: Decimal
    free: Decimal
    unknown: Decimal
    needed: Decimal
    peak_needed_gpus: float
    cost: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class IdleFigures:
    """Idle dollars and how they divide. Idle = idle-held + free; unknown is told apart.

    `undetermined` are idle hours of which no bill says how they are paid.
    """

    currency: str
    gpu_hours: Decimal
    billed_gpu_hours: Decimal
    cost: Decimal
    cost_per_year: Decimal
    stoppable_per_month: Decimal
    committed_per_month: Decimal
    partly_busy_per_month: Decimal
    undetermined_per_month: Decimal
    unknown_per_month: Decimal
    committed_until: str | None


@dataclass(frozen=True, slots=True)
class BillFigures:
    """Amortised GPU cost a month today and under the plan.

    today + repriced + growth + expiring - saving = plan, and the recommendations add up to
    `saving_per_month`. `repriced` is what the same GPU-hours would cost at the prices the plan
    uses, less what they did cost; `growth` is what the demand to come costs more than that of the
    past, nothing bought anew; `expiring` is what owned commitments change that end within the
    year, or were bought after the window. All are told apart and never counted as a saving.
    `saving_low` and `saving_high` are the savings in the worse and the better of ten ways in which
    demand may come (10th and 90th percentile), None where it was not forecast; `plan_low` and
    `plan_high` are the same of the plan's cost.
    The plan is counted per GPU: `whole_machines` is what it would cost more at most if each hour's
    GPUs were bought as whole machines.
    """

    currency: str
    today_per_month: Decimal
    plan_per_month: Decimal
    saving_per_month: Decimal
    cash_saving_per_month: Decimal
    repriced_per_month: Decimal
    expiring_per_month: Decimal
    whole_machines_per_month: Decimal
    not_planned_per_month: Decimal
    growth_per_month: Decimal = Decimal(0)
    saving_low_per_month: Decimal | None = None
    saving_high_per_month: Decimal | None = None
    plan_low_per_month: Decimal | None = None
    plan_high_per_month: Decimal | None = None


@dataclass(frozen=True, slots=True)
class SolveFigures:
    """How the optimiser ended; objective and bound in USD over a year.

    The year is `hours_planned` modelled hours, weighted to 8,760. Needed hours that no priced
    offer can serve are counted in `short_gpu_hours_per_month`, and in no dollars of a bill.
    `audited` is the objective priced again by other code (None: it was not), `stages` the same of
    every stage that the savings are differences of. The hours are planned in `scenarios` ways in
    which demand may come; `risk` is the part of the objective that is no money: the weight of the
    dearest of them.
    """

    status: str
    solver: str
    objective: float
    bound: float
    gap: float
    hours_planned: int
    short_gpu_hours_per_month: float
    audited: float | None = None
    stages: tuple[StageProof, ...] = ()
    scenarios: int = 1
    risk: float = 0.0


@dataclass(frozen=True, slots=True)
class MixRow:
    """What the plan serves one class with."""

    workload_class: str
    gpu_family: str
    offer: str
    purchase_option: str
    gpu_hours_per_month: float
    cost_per_month: Decimal


@dataclass(frozen=True, slots=True)
class RejectedPrice:
    """A price that never reached the model, and why."""

    provider: str
    region: str
    instance_type: str
    purchase_option: str
    usd_per_instance_hour: Decimal | None
    as_of: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far one input reaches."""

    source: str
    dataset: str
    account: str
    data_to: str
    stale: bool


@dataclass(frozen=True, slots=True)
class Move:
    """Recommendations of one kind taken together: what to do, what it saves, what it commits."""

    title: str
    ids: tuple[str, ...]
    saving_per_month: Decimal
    cash_saving_per_month: Decimal
    total_commitment: Decimal
    upfront: Decimal
    currency: str
    capacity_assured: str
    why: str
    risk: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All figures of a night's report. Times are ISO UTC texts; tables stand beside it as CSV."""

    date: str
    window_start: str
    window_end: str
    hours_observed: int
    fleet_gpus: int
    idle: tuple[IdleFigures, ...]
    bill: BillFigures
    states: tuple[StateRow, ...]
    classes: tuple[ClassRow, ...]
    mix: tuple[MixRow, ...]
    solve: SolveFigures | None
    moves: tuple[Move, ...]
    rejected_prices: tuple[RejectedPrice, ...]
    prices_used: int
    freshness: tuple[Freshness, ...]
    notes: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    least_history_hours: int = 0
    has_billing: bool = True
    has_utilization: bool = True
    reasons: Reasons | None = None
    risks: Risks | None = None
    restated: tuple[Restated, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A frozen plan: what should change, from which data, until when it holds.

    `inputs` are the ids of all deliveries that were read, `lineage` those that each cloud's
    recommendations rest on.
    """

    date: str
    data_as_of: str
    valid_until: str
    inputs: tuple[str, ...]
    changes: tuple[Change, ...]
    summary: Summary
    format: str = FORMAT
    version: int = VERSION
    made_by: str = field(default="")
    lineage: tuple[Lineage, ...] = ()

    def to_text(self) -> str:
        """The plan as canonical JSON with its checksum, ending in a newline."""
        body = _plain(self)
        body["checksum"] = checksum(body)
        return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @staticmethod
    def from_text(text: str) -> Plan:
        """The plan read back. DataError if it is no plan; UnsafePlan if it was edited."""
        try:
            body = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(f"not a plan: {error}") from None
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise DataError(f"not a plan: its format is not {FORMAT!r}")
        if body.get("version") != VERSION:
            raise UnsafePlan(f"plan of version {body.get('version')}, this program reads {VERSION}")
        stated = body.pop("checksum", None)
        if stated != checksum(body):
            raise UnsafePlan("the plan was edited: its checksum does not match")
        try:
            return _PLAN.validate_python(body)
        except ValidationError as error:
            raise DataError(f"not a plan: {error}") from None


def checksum(body: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON of the body, as `sha256:hex`."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return money.text(value) if isinstance(value, Decimal) else value


_PLAN = TypeAdapter(Plan)
