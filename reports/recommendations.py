"""The Markdown report of a night: first the answer in dollars, then what makes it, then how."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2

from data.frames import records
from data.names import short_name
from reports import adds_up, answer, ladder, numbers, restated, risks, unmet, why
from reports.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from data.plan import ClassRow, Freshness, IdleFigures, Plan, RejectedPrice, Summary

__all__ = ["Tables", "report_markdown"]

MOST_ROWS = 50
MOST_IDLE_ROWS = 10
# Above this the rejected prices are counted by reason, and each stands in the appendix.
MOST_PRICES = 40
# How the reason of a price begins in whose place another one serves, as planner/prices.py has it.
SUPERSEDED = "superseded:"

_SEVERITIES = ("error", "warning", "info")
_MARKDOWN = re.compile(r"([\\`|*\[\]~])|(?<!\w)_|_(?!\w)")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def report_markdown(plan: Plan, tables: Tables) -> str:
    """The report as Markdown, ending in one line feed; the same inputs give the same bytes."""
    summary, reasons = plan.summary, plan.summary.reasons
    recommendations = records(tables.recommendations)
    text = _environment().get_template("report.md.j2").render(
        plan=plan,
        summary=summary,
        idle_figures=[_idle_entry(summary, entry) for entry in answer.by_currency(summary)],
        steps=answer.bill_steps(summary.bill),
        steps_add_up=answer.adds_up(summary.bill),
        foreign=answer.foreign(summary),
        is_short_history=answer.is_short_history(summary),
        year=answer.year_of(summary.solve, summary) if summary.solve else None,
        moves=summary.moves,
        recommendations=recommendations[:MOST_ROWS],
        more=_more(recommendations),
        totals=_totals(recommendations, summary),
        idle=_dearest_idle(tables),
        idle_count=sum(tables.idle["state"].isin(["free", "idle_held"]).astype(int).tolist()),
        classes=_classes(summary),
        mix=_mix(summary),
        commitments=records(tables.commitments),
        limits=records(tables.limits),
        findings=_findings(tables),
        more_findings=max(0, len(_listed(tables)) - MOST_ROWS),
        sums=adds_up.view(tables.quality, MOST_ROWS),
        finding_counts=Counter(tables.quality["severity"].tolist()),
        prices=_prices(summary.rejected_prices),
        stale=_old(summary, tables),
        not_fetched=_not_fetched(tables),
        purchases=why.purchases(reasons),
        limit_sentences=why.limit_sentences(reasons),
        shortages=reasons.shortages if reasons else (),
        since=reasons.since if reasons else None,
        restated=restated.view(summary.restated),
        known_events=ladder.known_events(reasons),
        event_costs=ladder.event_costs(reasons),
        unmet=unmet.view(reasons),
        ladder=ladder.view(reasons),
        ranges=ladder.ranges(summary.bill),
        scenarios=ladder.scenarios(summary.solve) if summary.solve else "",
        risk=ladder.risk_month(summary.solve) if summary.solve else None,
        sure=risks.view(summary.risks),
        not_chosen=why.not_chosen(reasons)[:MOST_ROWS],
        more_not_chosen=max(0, len(why.not_chosen(reasons)) - MOST_ROWS),
        proof=why.proof(summary.solve) if summary.solve else None,
        unproven=why.unproven(summary.solve) if summary.solve else [],
    )  # fmt: skip
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def escape(value: object) -> str:
    r"""A text as one line that Markdown shows as it is; a dash where it is missing.

    >>> escape("a|b <i> `x`"), escape("idle_held"), escape(None)
    ('a\\|b &lt;i&gt; \\`x\\`', 'idle_held', '-')
    """
    if value is None or value == "":
        return numbers.NOTHING
    line = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    line = re.sub("[&<>]", lambda match: _ENTITIES[match.group()], line)
    return _MARKDOWN.sub(lambda match: f"\\{match.group()}", line)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown; every foreign text goes through the filter `text`
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "text": escape,
        "short": short_name,
        "amount": numbers.amount,
        "plain_amount": numbers.plain_amount,
        "rate": numbers.rate,
        "cents": numbers.cents,
        "saves": numbers.savings,
        "sentence": numbers.sentence,
        "quantity": numbers.quantity,
        "gpu_hours": numbers.gpu_hours,
        "share": numbers.share,
        "gap": numbers.gap,
        "percent": numbers.percent,
        "moment": numbers.moment,
        "term": numbers.term,
        "counted": numbers.counted,
    }
    environment.filters.update(filters)
    return environment


def _sums(recommendations: list[dict[str, Any]], column: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for row in recommendations:
        value = row[column]
        if value is not None:
            sums[row["currency"]] = sums.get(row["currency"], Decimal(0)) + value
    return sums


def _more(recommendations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the rows that are not shown come to, one entry a currency."""
    hidden = recommendations[MOST_ROWS:]
    counts = Counter(row["currency"] for row in hidden)
    savings = _sums(hidden, "saving_per_month")
    cash = _sums(hidden, "cash_saving_per_month")
    commits = _sums(hidden, "total_commitment")
    return [
        {
            "count": counts[currency],
            "currency": currency,
            "saving_per_month": savings[currency],
            "cash_saving_per_month": cash[currency],
            "total_commitment": commits.get(currency),
        }
        for currency in sorted(counts)
    ]


def _totals(recommendations: list[dict[str, Any]], summary: Summary) -> list[dict[str, Any]]:
    """The exact totals by currency, and whether the rows as shown add up to them."""
    shown = recommendations[:MOST_ROWS] + _more(recommendations)
    savings = _sums(shown, "saving_per_month")
    cash = _sums(shown, "cash_saving_per_month")
    commits = _sums(shown, "total_commitment")
    totals = []
    for currency in sorted(savings):
        of_currency = [row for row in shown if row["currency"] == currency]
        saving = savings[currency]
        stated = summary.bill.saving_per_month if currency == summary.bill.currency else None
        totals.append(
            {
                "currency": currency,
                "saving_per_month": saving,
                "cash_saving_per_month": cash[currency],
                "total_commitment": commits.get(currency),
                "adds_up": numbers.adds_up([row["saving_per_month"] for row in of_currency], saving)
                and numbers.adds_up([row["cash_saving_per_month"] for row in of_currency],
                                    cash[currency]),
                "differs": stated is not None
                and numbers.rounded(stated) != numbers.rounded(saving),
            }
        )  # fmt: skip
    return totals


def _idle_entry(summary: Summary, entry: IdleFigures) -> dict[str, Any]:
    """One currency's idle figures, and whether what is unknown is the finding instead."""
    return {
        "figures": entry,
        "unknown_hours": answer.unknown_hours(summary, entry.currency),
        "mostly_unknown": answer.mostly_unknown(summary, entry),
        "known_idle": answer.known_idle(summary, entry),
    }


def _mix(summary: Summary) -> dict[str, Any]:
    """The mix, its total, and what the plan costs beside it."""
    costs = [row.cost_per_month for row in summary.mix]
    total = sum(costs, Decimal(0))
    beside = summary.bill.plan_per_month - total
    return {
        "rows": summary.mix,
        "total": total,
        "beside": beside,
        "has_spot": any(row.purchase_option == "spot" for row in summary.mix),
        "adds_up": numbers.adds_up(costs, total)
        and numbers.adds_up([total, beside], summary.bill.plan_per_month),
    }


def _dearest_idle(tables: Tables) -> list[dict[str, Any]]:
    idle = [row for row in records(tables.idle) if row["state"] in ("free", "idle_held")]
    idle.sort(
        key=lambda row: (row["currency"], -(row["cost"] or 0), row["instance_id"], row["state"])
    )
    return idle[:MOST_IDLE_ROWS]


def _classes(summary: Summary) -> list[dict[str, Any]]:
    """One entry a class: its row, and the hours that were taken off, state by state."""
    return [
        {"row": row, "off": row.billed - row.needed, "held_off": _held_off(row)}
        for row in summary.classes
    ]


def _held_off(row: ClassRow) -> Decimal:
    """Idle-held hours beyond the class's threshold: what free hours leave of the difference."""
    return max(row.billed - row.needed - row.free, Decimal(0))


def _findings(tables: Tables) -> list[dict[str, Any]]:
    found = _listed(tables)
    found.sort(key=lambda row: (_SEVERITIES.index(row["severity"]), row["check"], row["scope"]))
    return found[:MOST_ROWS]


def _not_fetched(tables: Tables) -> list[dict[str, Any]]:
    return [row for row in records(tables.quality) if row["check"] == "not_fetched"]


def _old(summary: Summary, tables: Tables) -> list[Freshness]:
    """What is stale, but for the accounts of sources that were not fetched, which are told so."""
    told = bool(_not_fetched(tables))
    return [row for row in summary.freshness if row.stale and not (told and row.account != "all")]


def _listed(tables: Tables) -> list[dict[str, Any]]:
    """The findings that the table of findings is of: checks of sums have a table of their own."""
    return [row for row in records(tables.quality) if not adds_up.is_check(row)]


def _prices(rejected: Iterable[RejectedPrice]) -> dict[str, Any]:
    """The rejected prices: each row, and their number by status and reason, most first.

    Those that another price stands in for are only counted: nothing is wrong with them.
    """
    every = list(rejected)
    listed = [price for price in every if not price.reason.startswith(SUPERSEDED)]
    counts = Counter((price.status, price.reason) for price in listed)
    return {
        "rows": listed,
        "superseded": len(every) - len(listed),
        "grouped": len(listed) > MOST_PRICES,
        "reasons": sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])),
    }
