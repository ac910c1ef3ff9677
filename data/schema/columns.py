"""What a table declaration is made of: dtypes, columns, tables, and the closed sets of values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dtype(StrEnum):
    """What a column holds. `MONEY` and `HOURS` are exact: DECIMAL(38, 26)."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    MONEY = "money"
    HOURS = "hours"
    TIME = "time"
    DATE = "date"
    BOOL = "bool"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `low` and `high` bound a number, ends included."""

    name: str
    dtype: Dtype
    unit: str
    nullable: bool
    meaning: str
    low: float | None = None
    high: float | None = None
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns in published order, its key, and what one row is."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Column names in published order."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        """The declaration of one column; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def need(name: str, dtype: Dtype, meaning: str, unit: str = "", **more: object) -> Column:
    """A column that may not be empty."""
    return Column(name, dtype, unit, False, meaning, **more)  # type: ignore[arg-type]  # bounds


def may(name: str, dtype: Dtype, meaning: str, unit: str = "", **more: object) -> Column:
    """A column that may be empty: no reading, never 0."""
    return Column(name, dtype, unit, True, meaning, **more)  # type: ignore[arg-type]  # bounds


T, I, F, M, H = Dtype.TEXT, Dtype.INT, Dtype.FLOAT, Dtype.MONEY, Dtype.HOURS  # noqa: E741
TIME, DATE, BOOL, JSON = Dtype.TIME, Dtype.DATE, Dtype.BOOL, Dtype.JSON

# Paid for whether used or not.
COMMITTED_OPTIONS = ("reserved", "savings_plan", "capacity_block")
PURCHASE_OPTIONS = ("on_demand", "reserved", "savings_plan", "spot", "capacity_block", "unknown")
COMMITMENT_STATUSES = ("used", "unused")
CHARGE_TYPES = (
    "usage", "fee", "tax", "credit", "refund", "discount", "adjustment", "other",
)  # fmt: skip
STATES = ("busy", "idle_held", "free", "unknown")
SEVERITIES = ("info", "warning", "error")
