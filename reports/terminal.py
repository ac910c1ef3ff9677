"""What a person reads on the terminal: aligned tables, and the summary that `demo` ends with."""

from __future__ import annotations

import re
import textwrap
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import money
from reports import answer, numbers

if TYPE_CHECKING:
    from pathlib import Path

    from data.plan import IdleFigures, Plan, Summary

WIDTH = 80
_LABEL = 10
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_PURPOSES = (
    ("report.md", "the report: start here"),
    ("recommendations.csv", "what to do, most dollars first"),
    ("commitments.csv", "commitments, owned and advised"),
    ("limits.csv", "scaling limits, now and proposed"),
    ("idle.csv", "idle and unknown GPU-hours by instance"),
    ("demand.csv", "GPUs needed by hour and class, and forecast"),
    ("quality.csv", "what was found in the data"),
    ("plan.json", "the plan itself, sealed by a checksum"),
    ("run.json", "inputs, versions and the solver's outcome"),
)
_PARTS = (
    ("stoppable_cost_per_month", "could have been stopped"),
    ("committed_idle_cost_per_month", "committed, can only be filled"),
    ("partly_busy_idle_cost_per_month", "on nodes that also worked"),
    ("undetermined_idle_cost_per_month", "paid in a way that no bill tells"),
    ("unknown_cost_per_month", "unknown, not idle"),
    ("idle_cost_per_year", "a year of all that is idle"),
)
# What must not be torn apart at the end of a line: an amount and its unit or currency.
_UNIT = re.compile(r"(\d[\d,.]*%?) (?=[A-Za-z])|(\b[A-Z]{3}) (?=[-+]?\d)")
_FIXED = "\u00a0"
_PER = re.compile(rf"[ {_FIXED}](a) (month|year)\b")


def table_text(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """The rows as an aligned table with a header; columns of numbers stand to the right.

    Values are written as the JSON has them; a missing one as `-`.

    >>> print(table_text([{"cloud": "aws", "cost": "850.1"}, {"cloud": "gcp"}], ["cloud", "cost"]))
    cloud   cost
    aws    850.1
    gcp        -
    """
    cells = [[_text(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns), *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    right = [_is_numeric([line[place] for line in cells]) for place in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def demo_summary(plan: Plan, out_dir: Path) -> str:
    """The night in some twenty lines: idle dollars, the bill, the three moves, the files."""
    summary = plan.summary
    head = [
        f"GPU capacity on {summary.date}: at most "
        f"{numbers.counted(summary.fleet_gpus, 'GPU')} billed at once",
        f"{numbers.counted(summary.hours_observed, 'hour')} observed "
        f"({numbers.moment(summary.window_start)} to {numbers.moment(summary.window_end)})",
    ]
    if answer.is_short_history(summary):
        least = numbers.counted(summary.least_history_hours, "hour")
        head.append(_wrapped(f"The history is short: a plan should rest on {least} at least."))
    blocks = ["\n".join(head), "\n".join(_idle_lines(summary)), "\n".join(_bill_lines(summary))]
    return "\n\n".join([*blocks, _moves_text(plan), _files_text(out_dir)])


def idle_text(document: dict[str, Any]) -> str:
    """The document of `loadfactor idle` for people: rows, dollars by part, patterns, alerts.

    The rows are those of the document, with its numbers; other amounts have two decimals.
    """
    rows = document["rows"]
    if not rows:
        return "nothing to show"
    blocks = [_unknown_sentence(rows), table_text(rows, list(rows[0])), _parts_text(document)]
    patterns = [
        _paragraph(
            "Patterns" if number == 0 else "",
            f"{str(one['kind']).replace('_', ' ')}, {_text(one['scope'])}: {_pattern_size(one)}: "
            f"{_text(one['action'])}",
        )
        for number, one in enumerate(document["patterns"])
    ]
    alerts = [
        _paragraph(
            "Alerts" if number == 0 else "",
            f"{_text(one['rule'])} {one['state']} since {numbers.moment(one['since'])}, "
            f"{_cents(one['cost'], one['currency'])}: {_text(one['scope'])}",
        )
        for number, one in enumerate(document["alerts"])
    ]
    return "\n\n".join(filter(None, [*blocks, "\n".join(patterns), "\n".join(alerts)]))


def commitments_text(document: dict[str, Any]) -> str:
    """The document of `loadfactor commitments` for people: what its amounts are, and its rows."""
    rows = document["rows"]
    if not rows:
        return "nothing to show"
    hours, window = numbers.counted(document["hours_observed"], "hour"), document["window"]
    head = _wrapped(
        f"A month of 730 hours, as the mean of {hours} observed "
        f"({numbers.moment(window['start'])} to {numbers.moment(window['end'])}): rates, which no "
        "one month's bill adds up to."
    )
    months = {name: f"{name}_per_month" for name in ("committed", "used", "unused")}
    shown = [{months.get(name, name): value for name, value in row.items()} for row in rows]
    return f"{head}\n\n{table_text(shown, list(shown[0]))}"


def _pattern_size(pattern: dict[str, Any]) -> str:
    """GPU-hours, where the pattern has any (a commitment of dollars has none), and dollars."""
    hours = Decimal(pattern["gpu_hours"])
    cost = f"{_cents(pattern['cost_per_month'], pattern['currency'])} a month"
    return f"{numbers.gpu_hours(hours)}, {cost}" if hours else cost


def _unknown_sentence(rows: list[dict[str, Any]]) -> str:
    """What nobody knows, where that is more than half of the hours; else nothing."""
    billed = money.total(Decimal(row["gpu_hours"]) for row in rows)
    unknown = money.total(Decimal(row["gpu_hours"]) for row in rows if row["state"] == "unknown")
    if unknown <= billed * answer.MOSTLY:
        return ""
    return _wrapped(
        f"Nobody knows what {numbers.quantity(unknown)} of {numbers.gpu_hours(billed)} did: "
        "load utilization that covers them."
    )


def _parts_text(document: dict[str, Any]) -> str:
    hours = document["hours_observed"]
    lines = [f"A month of 730 hours, as the mean of {numbers.counted(hours, 'observed hour')}"]
    parts = [(label, _amounts(document.get(name, {}))) for name, label in _PARTS]
    width = max(len(amounts) for _, amounts in parts)
    lines += [f"  {label:<34}{amounts:>{width}}" for label, amounts in parts]
    unpriced = Decimal(document.get("unpriced_idle_gpu_hours", "0"))
    if unpriced:
        lines.append(f"  {'idle hours without a known price':<34}{numbers.gpu_hours(unpriced)}")
    return "\n".join(lines)


def _amounts(by_currency: dict[str, str]) -> str:
    ordered = sorted(by_currency, key=lambda code: (code != "USD", code))
    return ", ".join(_cents(by_currency[code], code) for code in ordered) or numbers.NOTHING


def _cents(text: str | None, currency: str) -> str:
    return numbers.NOTHING if text is None else numbers.cents(Decimal(text), currency)


def _idle_lines(summary: Summary) -> list[str]:
    lines = []
    for entry in answer.by_currency(summary):
        if answer.mostly_unknown(summary, entry):
            lines += _unknown_lines(summary, entry)
        else:
            lines += _known_lines(summary, entry)
    return lines or [_paragraph("Idle", "no GPU-hours were billed in this window")]


def _known_lines(summary: Summary, entry: IdleFigures) -> list[str]:
    cost = numbers.cents(entry.cost, entry.currency)
    billed = numbers.quantity(entry.billed_gpu_hours)
    return [
        _paragraph(
            "Idle",
            f"{numbers.quantity(entry.gpu_hours)} of {billed} billed "
            f"{'GPU-hour' if billed == '1' else 'GPU-hours'} "
            f"({numbers.share(entry.gpu_hours, entry.billed_gpu_hours)}) did nothing: "
            f"{numbers.amount(entry.cost_per_year, entry.currency)} a year",
        ),
        _paragraph(
            "",
            f"({cost} in {numbers.counted(summary.hours_observed, 'hour')}; "
            f"{cost} x {money.HOURS_PER_YEAR:,} / {summary.hours_observed:,})",
        ),
        _paragraph("", _idle_month(entry)),
    ]


def _unknown_lines(summary: Summary, entry: IdleFigures) -> list[str]:
    """What nobody knows comes first where it is most of the bill; idle is then no finding."""
    unknown = answer.unknown_hours(summary, entry.currency)
    month = numbers.amount(entry.unknown_per_month, entry.currency)
    remedy = "load utilization" + (" that covers them" if summary.has_utilization else "")
    lines = [
        _paragraph(
            "Unknown",
            f"Nobody knows what {numbers.quantity(unknown)} of "
            f"{numbers.gpu_hours(entry.billed_gpu_hours)} "
            f"({numbers.share(unknown, entry.billed_gpu_hours)}) did. They cost {month} a month: "
            f"{remedy}.",
        )
    ]
    known = answer.known_idle(summary, entry)
    if known:
        lines.append(_paragraph("", known))
    return lines


def _idle_month(entry: IdleFigures) -> str:
    def shown(value: Decimal) -> str:
        return numbers.amount(value, entry.currency)

    parts = [
        f"{shown(entry.stoppable_per_month)} could have been stopped",
        f"{shown(entry.committed_per_month)} was committed and can only be filled",
        f"{shown(entry.partly_busy_per_month)} lay on nodes that also worked",
    ]
    if entry.undetermined_per_month:
        parts.append(f"{shown(entry.undetermined_per_month)} was paid in a way that no bill tells")
    unknown = f"{shown(entry.unknown_per_month)} is unknown and not in it"
    return f"a month, as the mean of the window: {', '.join(parts)}; {unknown}"


def _bill_lines(summary: Summary) -> list[str]:
    """The bill's sum, and what is not in it."""
    bill = summary.bill
    today, planned = (
        numbers.amount(value, bill.currency)
        for value in (bill.today_per_month, bill.plan_per_month)
    )
    saves = numbers.savings(bill.saving_per_month, bill.cash_saving_per_month, bill.currency)
    lines = [
        _paragraph(
            "The bill",
            f"{today} a month today, {planned} under the plan (a mean over the coming year), "
            f"which {saves}:",
        )
    ]
    steps = answer.bill_steps(bill)
    width = max(len(step.amount) for step in steps)
    indent = " " * (_LABEL + width + 4)
    lines += [
        _wrapped(step.label, f"{'':<{_LABEL}}  {step.amount:>{width}}  ", indent) for step in steps
    ]
    return lines + [_paragraph("", f"({text})") for text in _limits_of(summary)]


def _limits_of(summary: Summary) -> list[str]:
    """What a reader of the bill's sum must know, in sentences."""
    bill = summary.bill
    texts = []
    if not answer.adds_up(bill):
        texts.append("The exact amounts add up; these rounded ones differ a little.")
    if summary.rates:
        texts.append(f"Other currencies are converted at {'; '.join(summary.rates)}.")
    for part in answer.foreign(summary):
        month = numbers.amount(part.per_month, part.currency)
        texts.append(f"Not in it, no rate is stated: {month} a month.")
    if bill.whole_machines_per_month >= 1:
        more = numbers.amount(bill.whole_machines_per_month, bill.currency)
        texts.append(f"Counted per GPU; as whole machines it costs up to {more} a month more.")
    short = summary.solve.short_gpu_hours_per_month if summary.solve else 0.0
    if short > 0:
        texts.append(
            f"{numbers.gpu_hours(short)} a month of those needed are not served, for want of a "
            "price or by a quota or rule: the true cost is higher."
        )
    if not summary.has_utilization:
        texts.append(
            "No utilization data was loaded: billed hours were planned, which hides idle GPUs."
        )
    return texts


def _moves_text(plan: Plan) -> str:
    lines = []
    for number, move in enumerate(plan.summary.moves, start=1):
        lines.append(_paragraph("Moves" if number == 1 else "", f"{number}. {_text(move.title)}"))
        parts = [numbers.savings(move.saving_per_month, move.cash_saving_per_month, move.currency)]
        if move.total_commitment:
            committed = numbers.amount(move.total_commitment, move.currency)
            parts.append(f"commits {committed} in all")
        lines.append(_paragraph("", "   " + "; ".join(parts)))
    return "\n".join(lines) or _paragraph("Moves", "none would save money")


def _files_text(out_dir: Path) -> str:
    lines = [_paragraph("Files", f"{out_dir}")]
    lines += [" " * _LABEL + f"  {name:<21}{purpose}" for name, purpose in _PURPOSES]
    return "\n".join(lines)


def _paragraph(label: str, text: str) -> str:
    indent = len(text) - len(text.lstrip())
    return _wrapped(text, label.ljust(_LABEL), " " * (_LABEL + indent))


def _wrapped(text: str, first: str = "", further: str = "") -> str:
    """The text in lines of at most WIDTH columns, no amount torn from its unit."""
    fixed = _UNIT.sub(lambda match: f"{match.group().rstrip()}{_FIXED}", text)
    fixed = _PER.sub(rf"{_FIXED}\1{_FIXED}\2", fixed)
    lines = textwrap.fill(
        fixed,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace(_FIXED, " ")


def _text(value: object) -> str:
    """A cell on one line; what a terminal would obey instead of showing is replaced."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return money.text(value) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_text(entry) for entry in value)
    return "".join(c if c.isprintable() else " " for c in str(value))


def _is_numeric(cells: list[str]) -> bool:
    present = [cell for cell in cells if cell != "-"]
    return bool(present) and all(_NUMBER.fullmatch(cell) for cell in present)
