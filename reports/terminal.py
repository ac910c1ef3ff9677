"""What a person reads on the terminal: aligned tables, and the summary that `demo` ends with."""

from __future__ import annotations

import re
import textwrap
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from data import money
from reports import numbers

if TYPE_CHECKING:
    from pathlib import Path

    from data.plan import BillFigures, Plan

WIDTH = 92
_LABEL = 10
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_PURPOSES = (
    ("report.md", "the report: start here"),
    ("recommendations.csv", "what to do, most dollars first"),
    ("commitments.csv", "commitments, owned and advised"),
    ("limits.csv", "scaling limits, now and proposed"),
    ("idle.csv", "idle and unknown GPU-hours by instance"),
    ("quality.csv", "what was found in the data"),
    ("plan.json", "the plan itself, sealed by a checksum"),
    ("run.json", "inputs, versions and the solver's outcome"),
)


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
    bill = summary.bill
    blocks = [
        f"GPU capacity on {summary.date}: at most "
        f"{numbers.counted(summary.fleet_gpus, 'GPU')} billed at once\n"
        f"{numbers.counted(summary.hours_observed, 'hour')} observed "
        f"({numbers.moment(summary.window_start)} to {numbers.moment(summary.window_end)})",
        "\n".join(_idle_lines(plan)),
        _paragraph("The bill", _bill_sentence(plan)),
    ]
    blocks[-1] += "".join("\n" + _paragraph("", f"({text})") for text in _told_apart(bill))
    if not summary.has_utilization:
        blocks[-1] += "\n" + _paragraph(
            "",
            "(No utilization data was loaded: billed hours were planned, which hides idle GPUs.)",
        )
    blocks += [_moves_text(plan), _files_text(out_dir)]
    return "\n\n".join(blocks)


def _idle_lines(plan: Plan) -> list[str]:
    summary = plan.summary
    lines = []
    for entry in summary.idle:
        cost = numbers.cents(entry.cost, entry.currency)
        lines += [
            _paragraph(
                "Idle",
                f"{numbers.quantity(entry.gpu_hours)} of "
                f"{numbers.quantity(entry.billed_gpu_hours)} billed GPU-hours "
                f"({numbers.share(entry.gpu_hours, entry.billed_gpu_hours)}) did nothing: "
                f"{numbers.amount(entry.cost_per_year, entry.currency)} a year",
            ),
            _paragraph(
                "",
                f"({cost} in {summary.hours_observed:,} hours; "
                f"{cost} x {money.HOURS_PER_YEAR:,} / {summary.hours_observed:,})",
            ),
            _paragraph(
                "",
                f"a month: {numbers.amount(entry.stoppable_per_month, entry.currency)} can be "
                f"stopped now, {numbers.amount(entry.committed_per_month, entry.currency)} is "
                "committed and can only be filled, "
                f"{numbers.amount(entry.partly_busy_per_month, entry.currency)} lies on nodes "
                f"that also work; {numbers.amount(entry.unknown_per_month, entry.currency)} is "
                "unknown and not in it",
            ),
        ]
    return lines or [_paragraph("Idle", "no GPU-hours were billed in this window")]


def _bill_sentence(plan: Plan) -> str:
    bill = plan.summary.bill
    return (
        f"{numbers.amount(bill.today_per_month, bill.currency)} a month today, "
        f"{numbers.amount(bill.plan_per_month, bill.currency)} under the plan, which "
        f"{numbers.savings(bill.saving_per_month, bill.cash_saving_per_month, bill.currency)}"
    )


def _told_apart(bill: BillFigures) -> list[str]:
    """What changes the bill and is no saving, in sentences."""
    texts = []
    for amount, cause in (
        (bill.repriced_per_month, "At the plan's prices the needed hours cost"),
        (bill.expiring_per_month, "When owned commitments end, their hours will cost"),
    ):
        if abs(amount) >= 1:
            direction = "more" if amount > 0 else "less"
            written = numbers.amount(abs(amount), bill.currency)
            texts.append(f"{cause} {written} a month {direction}; this is not counted as a saving.")
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
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * (_LABEL + indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


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
