"""Does it add up: the bill against itself, against the invoices, and against what is owned.

Each check gives a finding `adds_up_...` whose amount is the difference, also where there is none,
so that a reader sees what was checked. What differs by more than rounding, or by more than the
share stated here, is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.frames import records
from data.hours import HOUR
from data.identities import ADDS_UP, NEGATION, PLAN, RESERVATION, broken, identities
from data.names import UNUSED_PREFIX
from data.quality import MEASURED_SHARE, Finding
from data.shares import EXACT
from planner.nodes import last_segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data.hours import Window
    from data.identities import Identity

# What was read may differ from an invoice by this share of it: taxes and rounding of late rows.
INVOICE_SHARE = Decimal("0.005")
# Used and unused parts may differ by this share from what a commitment costs by its stated rate.
COMMITMENT_SHARE = Decimal("0.01")
# Unmeasured GPU-hours of a machine type are warned of from this share of their cloud's cost.
UNMEASURED_COST_SHARE = Decimal("0.01")
_CENT = Decimal("0.01")
_VIEWS = ("actual", "amortized")
_COMMITTED = ("reserved", "savings_plan")
_TITLES = {
    NEGATION: "savings plans: covered usage at list price + its negation = 0 in every hour",
    PLAN: "savings plans: covered + unused = commitment in every billing period",
    RESERVATION: "reservations: covered + unused = fees and upfront share in every billing period",
}


@dataclass(frozen=True, slots=True)
class Books:
    """All that is held against each other.

    `billing` is BILLING (Ibis), `invoices` INVOICES, `commitments` COMMITMENTS, `fleet`
    FLEET_HOURS of `window`, of which the hours `covered` have data.
    """

    billing: Any
    invoices: pd.DataFrame
    commitments: pd.DataFrame
    fleet: pd.DataFrame
    window: Window
    covered: pd.DatetimeIndex


def reconcile(books: Books) -> list[Finding]:
    """The findings of every check; the invoices are compared over all months that they name."""
    sums = _month_sums(books.billing)
    first = f"{books.window.start:%Y-%m}"
    recent = books.billing.filter(books.billing.billing_period >= first)
    return [
        *identity_findings(identities(recent)),
        *invoice_findings(books.invoices, sums),
        *view_findings([row for row in sums if row["billing_period"] >= first]),
        *term_findings(books.billing, books.commitments),
        *commitment_findings(books),
        *measured_findings(books.fleet),
    ]


def _finding(
    check: str, scope: str, detail: str, difference: Decimal, more: tuple[str, bool, int | None]
) -> Finding:
    currency, is_off, count = more
    severity = "warning" if is_off else "info"
    return Finding(ADDS_UP + check, scope, severity, detail, count, difference, currency)


def identity_findings(found: Iterable[Identity]) -> list[Finding]:
    """One finding for each identity that does not hold, and one for all that do, by check."""
    every = list(found)
    wrong = broken(every)
    findings = [
        _finding(
            one.check,
            f"{one.source}/{last_segment(one.commitment)}/{one.billing_period}",
            f"{one.detail}: rows are missing or doubled, or it covers accounts that are not loaded",
            one.difference,
            (one.currency, True, None),
        )
        for one in wrong
    ]
    groups: dict[tuple[str, str, str], list[Identity]] = {}
    for one in every:
        if one.holds:
            groups.setdefault((one.check, one.source, one.currency), []).append(one)
    for (check, source, currency), right in sorted(groups.items()):
        total = money.total(one.scale for one in right)
        detail = f"{_TITLES[check]}; {len(right)} hold, over {total:,.2f}"
        left = money.total(one.difference for one in right)
        findings.append(_finding(check, source, detail, left, (currency, False, len(right))))
    return findings


def _month_sums(billing: Any) -> list[dict[str, Any]]:
    """Exact sums of each source, dataset, accounts, month, way of paying and currency."""
    by = ["source", "dataset", "billing_account", "account", "billing_period", "currency"]
    rows = billing.mutate(is_committed=billing.purchase_option.isin(_COMMITTED))
    sums = rows.group_by([*by, "is_committed"]).aggregate(
        billed=rows.billed_cost.sum().cast(EXACT),
        effective=rows.effective_cost.sum().cast(EXACT),
        unbilled=rows.billed_cost.isnull().sum(),
    )
    frame = billing.get_backend().to_pyarrow(sums.order_by([*by, "is_committed"])).to_pandas()
    return records(frame)


def invoice_findings(invoices: pd.DataFrame, sums: list[dict[str, Any]]) -> list[Finding]:
    """Each invoice against the billed cost that was read for it (GCP: cost + credits)."""
    found = []
    for row in records(invoices):
        scope = f"{row['cloud']}/{row['account'] or 'all'}/{row['billing_period']}"
        mine = [one for one in sums if _is_of(one, row)]
        stated = [one for one in mine if one["billed"] is not None]
        if not stated:
            what = "nothing was read for it" if not mine else "the export states no billed cost"
            detail = f"the invoice is {row['amount']:,.2f} {row['currency']}: {what}"
            more = (row["currency"], True, None)
            found.append(_finding("invoice", scope, detail, -row["amount"], more))
            continue
        read = money.total(one["billed"] for one in stated)
        difference = read - row["amount"]
        is_off = abs(difference) > max(_CENT, INVOICE_SHARE * abs(row["amount"]))
        detail = f"read {read:,.2f}, the invoice is {row['amount']:,.2f} {row['currency']}"
        found.append(
            _finding("invoice", scope, detail, difference, (row["currency"], is_off, None))
        )
    return found


def _is_of(sums: dict[str, Any], invoice: dict[str, Any]) -> bool:
    """Whether the sums are of the invoice: its cloud, month, currency and account.

    Azure's amortized view repeats what the actual one states: it states no billed cost.
    """
    keys = ("billing_period", "currency")
    if sums["source"] != invoice["cloud"] or any(sums[key] != invoice[key] for key in keys):
        return False
    account = str(invoice["account"] or "").lower()
    named = [str(sums[key] or "").lower() for key in ("billing_account", "account")]
    return not account or account in named


def view_findings(sums: list[dict[str, Any]]) -> list[Finding]:
    """Azure's two views of one bill: what no commitment is concerned with is equal in both."""
    bills: dict[tuple[str, ...], dict[str, Decimal]] = {}
    for row in sums:
        if row["dataset"] not in _VIEWS or row["is_committed"]:
            continue
        column = "billed" if row["dataset"] == "actual" else "effective"
        key = (row["source"], row["billing_account"], row["billing_period"], row["currency"])
        views = bills.setdefault(key, {})
        views[row["dataset"]] = views.get(row["dataset"], Decimal(0)) + (row[column] or Decimal(0))
    found = []
    for (source, account, period, currency), views in sorted(bills.items()):
        if len(views) < len(_VIEWS):
            continue
        difference = views["amortized"] - views["actual"]
        is_off = abs(difference) > max(_CENT, COMMITMENT_SHARE * abs(views["actual"]))
        detail = (
            f"without commitments the amortized view holds {views['amortized']:,.2f}, the actual "
            f"one {views['actual']:,.2f}; one of the two exports is older or cut"
        )
        detail = detail if is_off else detail.partition(";")[0]
        scope = f"{source}/{account}/{period}"
        found.append(_finding("azure_views", scope, detail, difference, (currency, is_off, None)))
    return found


def term_findings(billing: Any, commitments: pd.DataFrame) -> list[Finding]:
    """FOCUS: what a commitment's usage costs is what was paid for it, over its whole term.

    Only of commitments whose whole term is loaded: within it the two sides differ by design.
    """
    focus = billing.filter((billing.dataset == "focus") & billing.commitment_id.notnull())
    is_purchase = focus.charge_type == "fee"
    sums = focus.group_by(["source", "commitment_id", "currency"]).aggregate(
        paid=focus.billed_cost.sum(where=is_purchase).cast(EXACT),
        used=focus.effective_cost.sum(where=focus.charge_type == "usage").cast(EXACT),
        first=focus.period_start.min(),
        last=focus.period_end.max(),
    )
    frame = billing.get_backend().to_pyarrow(sums.order_by("commitment_id")).to_pandas()
    terms = {last_segment(str(row["id"])): row for row in records(commitments)}
    found = []
    for row in records(frame):
        term = terms.get(last_segment(row["commitment_id"]))
        if term is None or row["paid"] is None or row["used"] is None:
            continue
        if row["first"] > term["start"] or row["last"] < term["end"]:
            continue
        difference = row["used"] - row["paid"]
        is_off = abs(difference) > max(_CENT, COMMITMENT_SHARE * abs(row["paid"]))
        detail = (
            f"over its term used and unused parts are {row['used']:,.2f}, paid {row['paid']:,.2f}"
        )
        scope = f"{row['source']}/{last_segment(row['commitment_id'])}"
        more = (row["currency"], is_off, None)
        found.append(_finding("focus_term", scope, detail, difference, more))
    return found


def commitment_findings(books: Books) -> list[Finding]:
    """Used + unused, with their fees, against what each reservation and block costs by its rate."""
    fleet = books.fleet[books.fleet["commitment_id"].notna()]
    of = fleet["commitment_id"].map(lambda name: last_segment(str(name)))
    accounts = {str(name).lower() for name in books.fleet["account"].unique()}
    found = []
    for row in records(books.commitments):
        rate = row["usd_per_instance_hour"]
        hours = _hours_in(books, row)
        if rate is None or not row["count"] or not hours or row["kind"] == "owned":
            continue
        mine = fleet[of == last_segment(str(row["id"]))]
        if mine["cost"].isna().any() or set(mine["currency"]) - {"USD"}:
            continue  # part of it has no known cost, which is told by itself
        if mine.empty and str(row["account"]).lower() not in accounts:
            continue
        due = money.product(money.product(rate, row["count"]), hours)
        is_unused = mine["instance_id"].str.startswith(UNUSED_PREFIX)
        used = money.total(mine.loc[~is_unused, "cost"])
        unused = money.total(mine.loc[is_unused, "cost"])
        difference = used + unused - due
        is_off = abs(difference) > max(_CENT, COMMITMENT_SHARE * abs(due))
        detail = f"used {used:,.2f} + unused {unused:,.2f}; by its rate it costs {due:,.2f}"
        scope = f"{row['cloud']}/{last_segment(str(row['id']))}"
        found.append(_finding("commitment", scope, detail, difference, ("USD", is_off, None)))
    return found


def _hours_in(books: Books, row: dict[str, Any]) -> float:
    """Hours of the commitment within the covered hours of the window, fractional at its edges."""
    start, end = max(row["start"], books.window.start), min(row["end"], books.window.end)
    if end <= start:
        return 0.0
    whole = pd.date_range(pd.Timestamp(start).floor("h"), end, freq="h", inclusive="left")
    missing = len(whole.difference(books.covered))
    return max(0.0, float((end - start) / HOUR) - missing)


def measured_findings(fleet: pd.DataFrame) -> list[Finding]:
    """Billed GPU-hours against those that telemetry saw, by cloud and machine type, in dollars."""
    rows = fleet[~fleet["instance_id"].str.startswith(UNUSED_PREFIX)]
    cost_of = rows.groupby(["cloud", "currency"])["cost"].agg(_known_total).to_dict()
    found = []
    typed = rows.assign(machine=rows["instance_type"].fillna("unknown type"))
    for key, part in typed.groupby(["cloud", "machine", "currency"], sort=True):
        cloud, machine, currency = (str(word) for word in key)
        billed = money.total(part["gpu_hours"])
        dark = part[part["reason"] == "no_telemetry"]
        unseen, cost = money.total(dark["gpu_hours"]), _known_total(dark["cost"])
        if billed <= 0:
            continue
        share = 1 - float(unseen / billed)
        large = cost > UNMEASURED_COST_SHARE * cost_of[cloud, currency]
        detail = (
            f"{billed - unseen:,.2f} of {billed:,.2f} billed GPU-hours were measured "
            f"({share:.1%}); the others cost {cost:,.2f}"
        )
        more = (currency, large and 0 < share < MEASURED_SHARE, round(unseen))
        found.append(_finding("measured", f"{cloud}/{machine}", detail, cost, more))
    return found


def _known_total(costs: pd.Series) -> Decimal:
    return money.total(costs.dropna())
