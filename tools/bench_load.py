"""Measures loading: CUR 2.0 exports of millions of rows loaded and brought to the hour.

Each step runs in a process of its own. The yardstick is DuckDB in the same memory: it scans the
columns that the product reads, casts them as the product does (amounts by way of text to
DECIMAL(38,26), maps to JSON texts), and groups by the columns that the product's hourly table is
grouped by. A second yardstick groups by little: account, machine type, line item type and hour.
Time is that of the processor, so that other work on the machine does not show; memory is the peak
resident set. Exits with 1 where a step fails, takes more than a GiB, or loading and the hourly
table take more than three times the yardstick.

    python tools/bench_load.py [ROWS ...]      # default: 1 and 10 million
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).parents[1]))

from reports.terminal import table_text
from tools.cur2 import write_cur2

SIZES = (1_000_000, 10_000_000)
FILES = 12
LIMIT_MIB = 1024
LIMIT_RATIO = 3.0
MEMORY_MIB = 384
_AMOUNTS = (
    "line_item_usage_amount", "line_item_unblended_cost", "pricing_public_on_demand_cost",
    "reservation_effective_cost", "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee", "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date", "savings_plan_used_commitment",
)  # fmt: skip
_TEXTS = (
    "line_item_line_item_type", "line_item_usage_type", "line_item_product_code",
    "bill_payer_account_id", "line_item_usage_account_id", "bill_invoice_id", "bill_bill_type",
    "line_item_currency_code", "line_item_availability_zone", "line_item_resource_id",
    "line_item_line_item_description", "pricing_unit", "product_instance_type",
    "product_region_code", "product_location", "reservation_reservation_a_r_n",
    "savings_plan_savings_plan_a_r_n", "capacity_reservation_capacity_reservation_arn",
    "capacity_reservation_capacity_reservation_type",
    "capacity_reservation_capacity_reservation_status", "split_line_item_parent_resource_id",
)  # fmt: skip
_TIMES = (
    "bill_billing_period_start_date", "line_item_usage_start_date", "line_item_usage_end_date",
)  # fmt: skip
_MAPS = ("product", "resource_tags")
_FEW = (
    "line_item_usage_account_id", "product_instance_type", "line_item_line_item_type",
    "line_item_usage_start_date",
)  # fmt: skip
_ALL, _LITTLE = "as the product groups", "grouped by little"


@dataclass(frozen=True, slots=True)
class Step:
    """One process that was measured: seconds of the processor and of the clock, peak MiB."""

    what: str
    cpu: float
    wall: float
    peak_mib: float
    exit_code: int

    @property
    def is_good(self) -> bool:
        """Whether it ended well, within the limit of memory."""
        return self.exit_code in (0, 4) and self.peak_mib <= LIMIT_MIB


def measure(what: str, command: list[str]) -> Step:
    """Runs the command to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    return Step(what, usage.ru_utime + usage.ru_stime, wall, peak, process.returncode)


def yardstick(folder: Path, grouping: str) -> None:
    """Scans the exports of the folder, casts, groups, and throws the groups away."""
    values = {name: name for name in (*_TEXTS, *_TIMES)}
    values |= {name: f"to_json({name})::VARCHAR" for name in _MAPS}
    sums = [f"sum({name}::VARCHAR::DECIMAL(38,26)) AS {name}" for name in _AMOUNTS]
    keys = list(values) if grouping == _ALL else list(_FEW)
    rest = [f"max({values[name]}) AS {name}" for name in values if name not in keys]
    grouped = ", ".join([*(f"{values[name]} AS {name}" for name in keys), *sums, *rest])
    read = ", ".join(f"max({name})" for name in (*_AMOUNTS, *values))
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{MEMORY_MIB}MiB'; SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{folder}/spill'")
        connection.execute(
            f"SELECT {read} FROM (SELECT {grouped} FROM read_parquet('{folder}/*.parquet') "
            "GROUP BY ALL)"
        ).fetchall()


def bring_to_hours(store: Path) -> None:
    """Builds the hourly table of the store, and adds up its rows."""
    from data import engines
    from data.hourly import AMOUNTS, descriptions, hourly
    from data.store import Store

    opened = Store.open(store)
    connection = engines.connect(MEMORY_MIB, keep_order=False)
    hours = hourly(opened.table("billing", connection))
    sums = {name: hours[name].sum() for name in AMOUNTS}
    last = {f"last_{name}": hours[name].max() for name in descriptions(hours.columns)}
    hours.aggregate(rows=hours.count(), **sums, **last).to_pyarrow()


def steps_of(rows: int, folder: Path) -> list[Step]:
    """What loading so many rows takes, step by step."""
    own = [sys.executable, __file__]
    program = str(Path(sys.executable).with_name("loadfactor"))
    exports, store = folder / "exports", folder / "store"
    # Apart, since the kernel counts the memory of a parent to its children.
    subprocess.run([*own, "--make", str(exports), str(rows)], check=True)
    load = [program, "load", str(exports), "--store", str(store), "--json", "--quiet"]
    days = "source,account,region,instance_type,purchase_option,day"
    return [
        measure("yardstick, " + _ALL, [*own, "--scan", str(exports), _ALL]),
        measure("yardstick, " + _LITTLE, [*own, "--scan", str(exports), _LITTLE]),
        measure("load", load),
        measure("the hourly table", [*own, "--hours", str(store)]),
        measure("totals by day", [program, "totals", "--by", days, "--store", str(store),
                                  "--json"]),
        measure("load again, unchanged", load),
    ]  # fmt: skip


def report(sizes: list[int]) -> bool:
    """Prints the table of every size; whether all is within its limits."""
    good = True
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="loadfactor-bench-") as name:
            steps = steps_of(rows, Path(name))
        all_, few, load, hours, totals, _ = steps
        shown = [
            {"what": step.what, "cpu s": f"{step.cpu:.1f}", "wall s": f"{step.wall:.1f}",
             "peak MiB": f"{step.peak_mib:.0f}", "exit": step.exit_code} for step in steps
        ]  # fmt: skip
        ratio = (load.cpu + hours.cpu) / all_.cpu
        little = (load.cpu + totals.cpu) / few.cpu
        sys.stdout.write(f"{rows:,} rows of CUR 2.0 in {FILES} Parquet files\n")
        sys.stdout.write(table_text(shown, ["what", "cpu s", "wall s", "peak MiB", "exit"]))
        sys.stdout.write(
            f"\nLoading and the hourly table take {ratio:.2f} times the yardstick; loading and "
            f"totals by day {little:.2f} times the one that groups by little.\n\n"
        )
        sys.stdout.flush()
        good = good and all(step.is_good for step in steps) and ratio <= LIMIT_RATIO
    return good


def main(arguments: list[str]) -> int:
    """The exit code, after the tables; with a first option, one step of the measurement."""
    match arguments:
        case ["--make", folder, rows]:
            write_cur2(Path(folder), int(rows), FILES)
        case ["--scan", folder, grouping]:
            yardstick(Path(folder), grouping)
        case ["--hours", store]:
            bring_to_hours(Path(store))
        case _:
            return 0 if report([int(one) for one in arguments] or list(SIZES)) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
