"""Measures what the README promises: a million rows loaded, a month of 50 classes planned.

Each is run as a user runs it, in a process of its own; time is wall time, memory the peak resident
set of that process. Loading is also shown as a ratio to DuckDB that reads the same file and sums
its cost. The plan is made from the million rows just loaded: 100 machines of 8 H100s in 50 classes,
among 1,245 of other types; the optimiser is also measured alone. Exits with 1 where a process
fails or takes more than a GiB.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from reports.terminal import table_text

ROWS = 1_000_000
CLASSES = 50
HOURS = 730
LIMIT_MIB = 1024
# So many that a million rows fill the 744 hours of October: 1,000,000 / 1,345 = 743.5.
MACHINES = 1345
# Of these so many have eight H100s.
NODES = 100

# A legacy CUR has over a hundred columns, most of them empty in a row; these are filled here.
_FILLED = {
    "identity/LineItemId": "'item' || i",
    "identity/TimeInterval": "strftime(t, '%Y-%m-%dT%H:00:00Z') || '/' || "
    "strftime(t + INTERVAL 1 HOUR, '%Y-%m-%dT%H:00:00Z')",
    "bill/InvoiceId": "'1'",
    "bill/BillingEntity": "'AWS'",
    "bill/BillType": "'Anniversary'",
    "bill/PayerAccountId": "'111122223333'",
    "bill/BillingPeriodStartDate": "'2026-10-01T00:00:00Z'",
    "bill/BillingPeriodEndDate": "'2026-11-01T00:00:00Z'",
    "lineItem/UsageAccountId": f"'44445555666' || (i % {MACHINES} % 7)",
    "lineItem/LineItemType": "'Usage'",
    "lineItem/UsageStartDate": "strftime(t, '%Y-%m-%dT%H:00:00Z')",
    "lineItem/UsageEndDate": "strftime(t + INTERVAL 1 HOUR, '%Y-%m-%dT%H:00:00Z')",
    "lineItem/ProductCode": "'AmazonEC2'",
    "lineItem/UsageType": "'BoxUsage:' || shape",
    "lineItem/Operation": "'RunInstances'",
    "lineItem/ResourceId": f"'i-' || lpad((i % {MACHINES})::VARCHAR, 17, '0')",
    "lineItem/UsageAmount": "'1.0000000000'",
    "lineItem/CurrencyCode": "'USD'",
    "lineItem/UnblendedRate": "rate",
    "lineItem/UnblendedCost": "rate",
    "lineItem/LineItemDescription": "'$' || rate || ' per On Demand Linux ' || shape || ' hour'",
    "product/ProductName": "'Amazon Elastic Compute Cloud'",
    "product/instanceType": "shape",
    "product/operatingSystem": "'Linux'",
    "product/region": "'us-east-1'",
    "product/tenancy": "'Shared'",
    "pricing/publicOnDemandCost": "rate",
    "pricing/publicOnDemandRate": "rate",
    "pricing/term": "'OnDemand'",
    "pricing/unit": "'Hrs'",
    "resourceTags/user:team": f"'team' || (i % {MACHINES} % 11)",
    "resourceTags/user:workload": f"'class-' || (i % {MACHINES} % {CLASSES})",
}
_EMPTY = [f"product/attribute{number}" for number in range(60)] + [
    "reservation/ReservationARN",
    "reservation/EffectiveCost",
    "savingsPlan/SavingsPlanARN",
    "savingsPlan/SavingsPlanEffectiveCost",
]


@dataclass(frozen=True, slots=True)
class Run:
    """One process that was measured."""

    what: str
    seconds: float
    peak_mib: float
    exit_code: int

    @property
    def is_good(self) -> bool:
        """Whether it ended well, within the limit of memory."""
        return self.exit_code in (0, 4) and self.peak_mib <= LIMIT_MIB


def make_cur(path: Path, rows: int = ROWS) -> None:
    """Writes a legacy CUR of hourly rows: three machine types, through October 2026."""
    columns = [f'{sql} AS "{name}"' for name, sql in _FILLED.items()]
    columns += [f'NULL AS "{name}"' for name in _EMPTY]
    source = f"""
        SELECT *, CASE shape WHEN 'p5.48xlarge' THEN '55.0400000000'
                  WHEN 'g5.xlarge' THEN '1.0060000000' ELSE '0.0960000000' END AS rate
        FROM (SELECT i, TIMESTAMP '2026-10-01' + INTERVAL 1 HOUR * (i // {MACHINES}) AS t,
                     CASE WHEN i % {MACHINES} < {NODES} THEN 'p5.48xlarge'
                          WHEN i % {MACHINES} % 9 = 0 THEN 'g5.xlarge'
                          ELSE 'm5.large' END AS shape
              FROM range({rows}) AS numbers(i))
    """
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {', '.join(columns)} FROM ({source})) TO '{path}' (FORMAT csv, HEADER)"
        )


def make_config(classes: int = CLASSES) -> str:
    """A configuration of so many classes, told by a tag; every second one may be interrupted."""
    return "".join(
        f'[[classes]]\nname = "class-{number}"\n'
        f'match = {{ tags = {{ workload = ["class-{number}"] }} }}\n'
        f"interruptible = {str(number % 2 == 0).lower()}\n"
        f"min_firm_share = {(number % 5) / 4}\ncheckpoint_minutes = 20\n\n"
        for number in range(classes)
    )


def make_problem(classes: int = CLASSES, hours: int = HOURS) -> dict[str, Any]:
    """A problem of the neutral format: daily waves of demand, four offers on two clouds."""
    offers = [
        {
            "id": f"{provider}-{place}",
            "provider": provider,
            "region": f"region-{place}",
            "gpus": 8,
            "on_demand": on_demand,
            "spot": round(on_demand * 0.4, 4),
            "spot_throughput": 0.9,
            "reservations": [{"id": "1y", "rate": round(on_demand * 0.6, 4)}],
        }
        for provider, place, on_demand in (
            ("aws", 1, 6.88), ("aws", 2, 7.1), ("gcp", 1, 7.4), ("gcp", 2, 7.95),
        )
    ]  # fmt: skip
    names = [offer["id"] for offer in offers]
    listed, demand = [], {}
    for number in range(classes):
        name = f"class-{number}"
        listed.append(
            {
                "id": name,
                "kind": "firm",
                "offers": names[number % 2 :: 2] if number % 3 else names,
                "shortage_penalty": 100.0,
                "min_firm_share": (number % 5) / 4,
            }
        )
        demand[name] = [
            round(8 + number % 7 + 6 * math.sin((hour + number) * math.pi / 12)
                  + (hour * 7919 + number * 104729) % 13 / 4, 3)
            for hour in range(hours)
        ]  # fmt: skip
    scenarios = [{"p": 1.0, "demand": demand}]
    return {"hours": hours, "classes": listed, "offers": offers, "scenarios": scenarios}


def measure(what: str, command: list[str], log: Path) -> Run:
    """Runs the command to its end; what it prints goes to the log."""
    with log.open("ab") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    kib = usage.ru_maxrss / 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return Run(what, seconds, kib / 1024, process.returncode)


def main() -> int:
    """The exit code, after the table of what was measured.

    With a path as its only argument, makes the bill there and measures nothing.
    """
    if sys.argv[1:]:
        make_cur(Path(sys.argv[1]))
        return 0
    program = str(Path(sys.executable).with_name("loadfactor"))
    with tempfile.TemporaryDirectory(prefix="loadfactor-bench-") as name:
        folder = Path(name)
        cur, problem, log = folder / "cur.csv", folder / "problem.json", folder / "log"
        # Apart, since the kernel counts the memory of a parent to its children.
        subprocess.run([sys.executable, __file__, str(cur)], check=True)
        problem.write_text(json.dumps(make_problem()))
        config = folder / "loadfactor.toml"
        config.write_text(make_config())
        count = "SELECT count(*), sum(\"lineItem/UnblendedCost\") FROM read_csv('{}')"
        reader = f"import duckdb; duckdb.sql({count.format(cur)!r}).fetchall()"
        store = ("--store", str(folder / "store"), "--json")
        load = measure(f"load {ROWS:,} CUR rows", [program, "load", str(cur), *store], log)
        read = measure("DuckDB reads and sums them", [sys.executable, "-c", reader], log)
        night = ("--config", str(config), "--date", "2026-11-01", "--out", str(folder / "out"))
        plan = measure(
            f"plan them: {CLASSES} classes, a month", [program, "plan", *night, *store], log
        )
        solve = measure(
            f"solve {CLASSES} classes x {HOURS} hours alone",
            [program, "solve", str(problem), "--json"],
            log,
        )
        runs = [load, read, plan, solve]
        rows = [
            {"what": run.what, "seconds": f"{run.seconds:.1f}", "peak MiB": f"{run.peak_mib:.0f}",
             "exit": run.exit_code} for run in runs
        ]  # fmt: skip
        ratio = load.seconds / read.seconds
        sys.stdout.write(table_text(rows, ["what", "seconds", "peak MiB", "exit"]))
        sys.stdout.write(f"\n\nLoading takes {ratio:.1f} times as long as reading and summing.\n")
        good = all(run.is_good for run in runs)
        if not good:
            sys.stdout.write(f"A process failed or took more than {LIMIT_MIB} MiB.\n")
            sys.stdout.write(log.read_text(errors="replace")[-4000:])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
