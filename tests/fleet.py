"""Builders of small bills and telemetry by hand, as tables of one connection."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import ibis
import pandas as pd
import pyarrow as pa

from data import frames, money
from data.engines import connect, ibis_schema
from data.hours import Window
from data.schema import BILLING, COMMITMENTS, UTILIZATION
from planner.fleet_hours import Fleet, Policy, build

if TYPE_CHECKING:
    from data.quality import Finding

DAY = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday
NODE = "p5.48xlarge"

SHAPES = pd.DataFrame(
    [
        ("aws", "p5.48xlarge", "p5", "H100-SXM5-80GB", "H100", 8),
        ("aws", "p5.4xlarge", "p5", "H100-SXM5-80GB", "H100", 1),
        ("gcp", "a3-highgpu-8g", "a3-high", "H100-SXM5-80GB", "H100", 8),
        ("azure", "Standard_ND96isr_H100_v5", "NDH100v5", "H100-SXM5-80GB", "H100", 8),
    ],
    columns=["cloud", "instance_type", "family", "gpu_model", "gpu_family", "gpus"],
)


def hour(index: float) -> datetime:
    """The moment `index` hours after midnight of DAY."""
    return DAY + timedelta(hours=index)


def window(hours: int, first: int = 0) -> Window:
    return Window(hour(first), hour(first + hours))


@cache
def connection():
    """One engine for all tests of the session."""
    return connect(256)


def charge(resource: str | None = "i-1", start: float = 0, hours: float = 1, **more) -> dict:
    """One charge: a p5.48xlarge on demand at 98.32 an hour, unless told otherwise."""
    gpus = more.pop("gpus", 8)
    row = {
        "unit": "u",
        "source": "aws",
        "dataset": "cur2",
        "billing_account": "payer",
        "account": "111122223333",
        "region": "us-east-1",
        "period_start": hour(start),
        "period_end": hour(start + hours),
        "billing_period": "2026-11",
        "resource_id": resource,
        "managed_service": False,
        "instance_type": NODE,
        "gpu_model": "H100-SXM5-80GB",
        "gpu_count": gpus,
        "instance_hours": Decimal(str(hours)),
        "gpu_hours": Decimal(str(hours)) * gpus if gpus else None,
        "purchase_option": "on_demand",
        "effective_cost": Decimal("98.32") * Decimal(str(hours)),
        "currency": "USD",
        "charge_type": "usage",
        "is_correction": False,
        "export_id": "d",
        "workload_class": "training",
    }
    return {**row, **more}


def reading(gpu: str = "GPU-0", at: int = 0, util: float | None = 90.0, **more) -> dict:
    """One reading of one GPU of instance i-1 in an hour, with a process and memory in use."""
    row = {
        "unit": "u",
        "hour_start": hour(at),
        "cloud": "aws",
        "account": "111122223333",
        "region": "us-east-1",
        "instance_id": "i-1",
        "gpu_uuid": gpu,
        "gpu_util": util,
        "memory_used_share": 0.5,
        "process_count": 1,
        "export_id": "t",
    }
    return {**row, **more}


def node_readings(at: int = 0, util: float | None = 90.0, gpus: int = 8, **more) -> list[dict]:
    """Readings of all GPUs of one instance in an hour; the GPUs are named after the instance."""
    instance = more.get("instance_id", "i-1")
    return [reading(f"{instance}-GPU-{n}", at, util, **more) for n in range(gpus)]


def idle(**more) -> dict:
    """What a free GPU reads."""
    return {"util": 0.0, "memory_used_share": 0.0, "process_count": 0, **more}


def held(**more) -> dict:
    """What a GPU reads that is held without work."""
    return {"util": 0.0, "memory_used_share": 0.9, "process_count": 1, **more}


def _bound(rows: list[dict], table, extra: dict[str, str] | None = None):
    """The rows as a table of the shared connection, numbered in order."""
    schema = ibis.schema({**dict(ibis_schema(table).items()), **(extra or {})})
    arrow = schema.to_pyarrow()
    numbered = [{"source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    columns = {name: [row.get(name) for row in numbered] for name in schema.names}
    data = pa.table(
        {name: pa.array(values, arrow.field(name).type) for name, values in columns.items()}
    )
    name = ibis.util.gen_name("test")
    return connection().create_table(name, ibis.memtable(data), temp=True)


def billing(rows: list[dict]):
    return _bound(rows, BILLING, {"workload_class": "string"})


def utilization(rows: list[dict]):
    return _bound(rows, UTILIZATION)


def owned(*rows: dict) -> pd.DataFrame:
    """Commitments that are owned: a reservation of one node for the year, unless told otherwise."""
    plain = {
        "unit": "u",
        "id": "ri-1",
        "cloud": "aws",
        "account": "111122223333",
        "kind": "reserved",
        "instance_type": NODE,
        "count": 1,
        "start": datetime(2026, 1, 1, tzinfo=UTC),
        "end": datetime(2027, 1, 1, tzinfo=UTC),
        "export_id": "c",
    }
    if not rows:
        return frames.empty(COMMITMENTS)
    full = [{**plain, "source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    return frames.conform(pd.DataFrame(full), COMMITMENTS)


def fleet(
    bill: list[dict], readings: list[dict], hours: int = 24, policy: Policy | None = None,
    commitments: pd.DataFrame | None = None,
) -> Fleet:  # fmt: skip
    """The fleet of the first `hours` hours of DAY."""
    return build(
        billing(bill),
        utilization(readings),
        policy or Policy(shapes=SHAPES),
        window(hours),
        commitments,
    )


def by_state(frame: pd.DataFrame, column: str = "gpu_hours") -> dict[str, Decimal]:
    """Exact sum of a column by state; states without rows are absent."""
    sums: dict[str, Decimal] = {}
    for state, value in zip(frame["state"], frame[column], strict=True):
        sums[state] = money.total([sums.get(state, Decimal(0)), value])
    return sums


def checks_of(found: Fleet) -> dict[str, Finding]:
    """The findings of a fleet by the name of their check."""
    return {finding.check: finding for finding in found.findings}


def day(offset: int = 0) -> date:
    return (DAY + timedelta(days=offset)).date()
