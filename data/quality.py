"""What the data is worth: gaps, doubles, late days, missing prices, billed against measured hours.

Nothing is repaired here. Each finding says what was seen, where and how much it concerns.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import ibis
import pandas as pd

from data import frames, money
from data.engines import run
from data.frames import records
from data.schema import QUALITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from decimal import Decimal

    from data.hours import Window

# Machine types that look as if they had GPUs: EC2 p, g; Azure NC, ND, NG, NV; GCP a2, a3, g2 ...,
# and any that names a model.
GPU_LOOKS = (
    r"(?i)^(ml\.)?(p[2-9]|g[3-9])[a-z0-9-]*\.|^(a[2-9]|g[2-9])-|^(ml\.)?(standard_)?n[cdvg]+[0-9]"
    r"|[hbg][1-3]00|gh200|gb[23]00|a100|mi[0-9]{3}"
)
# Of the billed GPU-hours, what telemetry should at least have seen.
MEASURED_SHARE = 0.9
# A savings plan's covered and unused parts may differ from its commitment by this share.
PLAN_SLACK = 0.01
_DAY_HOURS = 24

_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of QUALITY."""

    check: str
    scope: str
    severity: str
    detail: str
    count: int | None = None
    amount: Decimal | None = None
    currency: str | None = None


def table(findings: Iterable[Finding]) -> pd.DataFrame:
    """Frame of QUALITY: the findings, worst first, equal ones once.

    Findings of the same words are one, with the sums of their counts and amounts; in currencies
    of their own they stay apart.
    """
    ordered = sorted(
        _merged(set(findings)),
        key=lambda row: (_ORDER[row.severity], row.check, row.scope, row.detail),
    )
    if not ordered:
        return frames.empty(QUALITY)
    return frames.conform(pd.DataFrame([asdict(row) for row in ordered]), QUALITY)


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    groups: dict[tuple[str, ...], dict[str | None, list[Finding]]] = {}
    for one in findings:
        group = groups.setdefault((one.check, one.scope, one.detail), {})
        group.setdefault(one.currency, []).append(one)
    made = []
    for (check, scope, detail), currencies in groups.items():
        for currency, same in currencies.items():
            counts = [one.count for one in same if one.count is not None]
            amounts = [one.amount for one in same if one.amount is not None]
            made.append(
                Finding(
                    check,
                    scope,
                    min((one.severity for one in same), key=_ORDER.__getitem__),
                    detail if len(currencies) == 1 else f"{detail} ({currency})",
                    sum(counts) if counts else None,
                    money.total(amounts) if amounts else None,
                    currency,
                )
            )
    return made


def checks(
    billing: Any, utilization: Any, commitments: pd.DataFrame, window: Window
) -> list[Finding]:
    """Every finding on the tables, for the hours of the window.

    `billing` and `utilization` are Ibis tables of one connection, `commitments` a frame of
    COMMITMENTS. Findings with severity info change nothing; a warning makes the run one with
    partial data.
    """
    run(billing.get_backend(), "SET TimeZone = 'UTC'")
    start, end = (ibis.timestamp(edge) for edge in (window.start, window.end))
    dated = billing.filter(billing.period_start.notnull() & billing.period_end.notnull())
    inside = dated.filter((dated.period_start < end) & (dated.period_end > start))
    samples = utilization.filter((utilization.hour_start >= start) & (utilization.hour_start < end))
    found: list[Finding] = []
    for check in _BILL_CHECKS:
        found += check(inside)
    return [
        *found,
        *unknown_types(billing),
        *_undated(billing),
        *_backwards(billing),
        *_gaps(inside, window),
        *_measured(inside, samples),
        *_savings_plans(inside, commitments, window),
    ]


def _rows(expression: Any) -> list[dict[str, Any]]:
    return records(expression.get_backend().to_pandas(expression))


def _undated(billing: Any) -> list[Finding]:
    rows = billing.filter(billing.period_start.isnull() | billing.period_end.isnull())
    detail = "rows without a charge period; their cost is in the totals, not in hours"
    return _counted(rows, "undated_rows", "warning", detail)


def _backwards(billing: Any) -> list[Finding]:
    rows = billing.filter(billing.period_end < billing.period_start)
    detail = "rows whose charge period ends before it starts; they count in the hour of its start"
    return _counted(rows, "bad_period", "warning", detail)


def _counted(rows: Any, check: str, severity: str, detail: str) -> list[Finding]:
    """One finding per source and currency over the rows, with their effective cost."""
    sums = rows.group_by(["source", "currency"]).aggregate(
        n=rows.count(), amount=rows.effective_cost.sum()
    )
    return [
        Finding(
            check, row["source"], severity, detail, int(row["n"]), row["amount"], row["currency"]
        )
        for row in _rows(sums)
    ]


def _outside_period(inside: Any) -> list[Finding]:
    month = inside.period_start.strftime("%Y-%m")
    rows = inside.filter(month != inside.billing_period)
    detail = "rows whose charge period lies in another month than their bill"
    return _counted(rows, "rows_outside_period", "info", detail)


def _unknown_currency(inside: Any) -> list[Finding]:
    rows = inside.filter(inside.currency == "unknown")
    return _counted(rows, "unknown_currency", "warning", "rows whose export states no currency")


def _unknown_option(inside: Any) -> list[Finding]:
    rows = inside.filter(inside.gpu_hours.notnull() & (inside.purchase_option == "unknown"))
    detail = "GPU rows of which the export does not say how they were bought"
    return _counted(rows, "unknown_purchase_option", "info", detail)


def unknown_types(billing: Any) -> list[Finding]:
    """One finding per machine type that looks like one with GPUs and has no shape, with its cost.

    Of the whole bill: where no type is known there is no window of GPU-hours either.
    """
    looks = billing.filter(
        billing.gpu_count.isnull()
        & billing.gpu_hours.isnull()
        & billing.instance_hours.notnull()
        & billing.instance_type.re_search(GPU_LOOKS)
    )
    sums = looks.group_by(["source", "instance_type", "currency"]).aggregate(
        n=looks.count(), amount=looks.effective_cost.sum()
    )
    detail = (
        "looks like a GPU machine, but no shape is known: its GPU-hours are not counted until a "
        "price override states its gpu_model and gpus"
    )
    return [
        Finding(
            "unknown_gpu_type", f"{row['source']}/{row['instance_type']}", "warning", detail,
            int(row["n"]), row["amount"], row["currency"],
        )
        for row in _rows(sums)
    ]  # fmt: skip


_LINE = (
    "source", "resource_id", "sku", "period_start", "period_end", "usage_qty", "effective_cost",
    "billed_cost", "charge_type", "currency",
)  # fmt: skip


def _doubles(inside: Any) -> list[Finding]:
    line = [*_LINE, "account", "sku_description", "commitment_id", "tags"]
    equal = inside.group_by(line).aggregate(n=inside.count())
    equal = equal.filter(equal.n > 1)
    sums = equal.group_by("source").aggregate(n=(equal.n - 1).sum())
    detail = "rows equal to another row in every column; all are counted, as the bill counts them"
    return [
        Finding("duplicate_looking_rows", row["source"], "info", detail, int(row["n"]))
        for row in _rows(sums)
    ]


def _two_accounts(inside: Any) -> list[Finding]:
    machines = inside.filter(inside.gpu_hours.notnull() & inside.resource_id.notnull())
    # An export of a subscription and one of its billing account have units of different accounts.
    machines = machines.mutate(delivered_for=machines.unit.split("|")[1])
    lines = machines.group_by(list(_LINE)).aggregate(
        n=machines.count(),
        accounts=machines.account.nunique(),
        delivered=machines.delivered_for.nunique(),
    )
    shared = lines.filter((lines.accounts > 1) | (lines.delivered > 1))
    sums = shared.group_by(["source", "currency"]).aggregate(
        n=shared.n.sum(), amount=shared.effective_cost.sum()
    )
    detail = (
        "equal GPU rows of one resource under several accounts, or from exports of several: the "
        "same money loaded twice?"
    )
    return [
        Finding(
            "same_rows_in_two_accounts", row["source"], "warning", detail, int(row["n"]),
            row["amount"], row["currency"],
        )
        for row in _rows(sums)
    ]  # fmt: skip


_BILL_CHECKS: tuple[Callable[[Any], list[Finding]], ...] = (
    _outside_period, _unknown_currency, _unknown_option, _doubles, _two_accounts,
)  # fmt: skip


def _gaps(inside: Any, window: Window) -> list[Finding]:
    """Hours between a cloud's first and last charge in which it has no charge at all."""
    start, end = inside.period_start.epoch_seconds(), inside.period_end.epoch_seconds()
    spans = inside.select("source", a=start // 3600, b=(end - 1) // 3600)
    spans = spans.filter(spans.b - spans.a < _DAY_HOURS).distinct()
    first, limit = (int(edge.timestamp()) // 3600 for edge in (window.start, window.end))
    hours: dict[str, set[int]] = {}
    for row in _rows(spans):
        touched = range(max(row["a"], first), min(row["b"] + 1, limit))
        hours.setdefault(row["source"], set()).update(touched)
    found = []
    for source, seen in sorted(hours.items()):
        ordered = sorted(seen)
        steps = [after - before - 1 for before, after in itertools.pairwise(ordered)]
        missing, longest = sum(steps), max(steps, default=0)
        if missing:
            detail = f"hours without any charge between the first and the last; longest {longest}"
            severity = "warning" if longest >= _DAY_HOURS else "info"
            found.append(Finding("gap_in_billing", source, severity, detail, missing))
    return found


def _measured(inside: Any, samples: Any) -> list[Finding]:
    """Billed against measured GPU-hours of each cloud that has a bill."""
    machines = inside.filter(inside.gpu_hours.notnull() & (inside.charge_type == "usage"))
    single = machines.filter(machines.effective_cost.notnull())
    billed = _rows(
        single.group_by("source").aggregate(hours=single.gpu_hours.sum().cast("float64"))
    )
    distinct = samples.select("cloud", "gpu_uuid", "hour_start").distinct()
    seen = _rows(distinct.group_by("cloud").aggregate(hours=distinct.count()))
    measured = {row["cloud"]: int(row["hours"]) for row in seen}
    found = []
    for row in sorted(billed, key=lambda row: str(row["source"])):
        if row["hours"] <= 0:
            continue  # corrections took back all that was billed: there is nothing to compare
        hours = measured.get(row["source"], 0)
        share = hours / row["hours"]
        severity = "warning" if 0 < share < MEASURED_SHARE else "info"
        detail = f"{hours} GPU-hours measured of {row['hours']:.2f} billed ({share:.1%})"
        if not hours:
            detail = f"no telemetry: {row['hours']:.2f} billed GPU-hours are of unknown use"
        found.append(Finding("billed_against_measured", row["source"], severity, detail, hours))
    return found


def _savings_plans(inside: Any, commitments: pd.DataFrame, window: Window) -> list[Finding]:
    """Spend plans whose covered and unused parts do not add up to what was committed."""
    plans = commitments[commitments["usd_per_hour"].notna()]
    if not len(plans):
        return []
    paid = inside.filter(inside.commitment_id.notnull())
    hours = _rows(
        paid.group_by("commitment_id").aggregate(
            amount=paid.effective_cost.sum(),
            first=paid.period_start.min(),
            last=paid.period_end.max(),
            currency=paid.currency.max(),
        )
    )
    seen = {row["commitment_id"].lower(): row for row in hours}
    found = []
    for plan in records(plans):
        row = seen.get(plan["id"].lower())
        if row is None or row["amount"] is None:
            continue
        first, last = max(row["first"], plan["start"]), min(row["last"], plan["end"])
        span = min(last, pd.Timestamp(window.end)) - max(first, pd.Timestamp(window.start))
        due = float(plan["usd_per_hour"]) * (span / pd.Timedelta(hours=1))
        if due > 0 and abs(float(row["amount"]) - due) > PLAN_SLACK * due:
            detail = f"covered and unused parts are {row['amount']:.2f}, the commitment {due:.2f}"
            scope = f"{plan['cloud']}/{plan['id']}"
            found.append(
                Finding(
                    "savings_plan_identity", scope, "warning", detail, None, row["amount"],
                    row["currency"],
                )
            )  # fmt: skip
    return found
