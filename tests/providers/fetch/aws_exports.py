"""Exports as AWS delivers them, put into a bucket of moto: CUR 2.0, FOCUS and the legacy report.

Made by us in the public layouts. Every row is one hour of a p5.48xlarge (8 H100) on the 2nd of its
month, so that sums can be told by head: a delivery's cost is the sum of the costs it is given.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from moto.s3.models import s3_backends

from data.engines import connect
from data.store import Store
from data.totals import totals
from providers.aws.fetch import fetch
from providers.fetch.contract import Fetched, FetchTask
from tests.providers.loading_cases import CUR
from tests.providers.test_focus_billing import BASE as FOCUS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal
    from pathlib import Path

    from tests.providers.fetch.s3_server import Server

_engine = cache(lambda: connect(threads=1))
ARN = "arn:aws:bcm-data-exports:us-east-1:000000000011:export/gpu-1"
DAY = date(2026, 11, 30)


@dataclass
class Bucket:
    """A bucket of its own for one test; everything is put below `exports/`."""

    server: Server
    name: str

    def __post_init__(self) -> None:
        self.s3 = self.server.client()
        self.s3.create_bucket(Bucket=self.name)

    def put(self, key: str, content: bytes, written: datetime | None = None) -> None:
        """The object, with the time at which it was written if that matters."""
        held = s3_backends["123456789012"]["aws"].put_object(self.name, key, content)
        if written is not None:
            held.last_modified = written.replace(tzinfo=None)

    def delete(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.name, Key=key)

    def data_export(
        self,
        month: str,
        run: str,
        *costs: object,
        rows: Sequence[dict[str, Any]] = (),
        ending: str = "csv.gz",
        in_own_folder: bool = False,
        written: datetime | None = None,
    ) -> list[str]:
        """A delivery of a data export, one part a cost; the keys of its parts, its manifest last.

        `in_own_folder` is the delivery option that keeps every run; the other one overwrites.
        """
        own = f"/{run}" if in_own_folder else ""
        home, period = "exports/gpu", f"BILLING_PERIOD={month}"
        keys = []
        lines = [cur_row(month, cost, place) for place, cost in enumerate(costs)] or list(rows)
        for number, row in enumerate(lines, start=1):
            keys.append(f"{home}/data/{period}{own}/gpu-{number:05d}.{ending}")
            self.put(keys[-1], part([row], ending))
        document = {
            "executionId": run,
            "exportArn": ARN,
            "columns": [{"name": name, "type": "string"} for name in lines[0]],
            "dataFiles": [f"s3://{self.name}/{key}" for key in keys],
        }
        keys.append(f"{home}/metadata/{period}{own}/gpu-Manifest.json")
        self.put(keys[-1], json.dumps(document).encode(), written)
        return keys

    def legacy(self, month: str, assembly: str, *costs: object, written: datetime | None = None,
               leave_out: int = 0, overwrites: bool = False) -> list[str]:  # fmt: skip
        """A delivery of the legacy report, of which the last parts may be missing.

        Its manifest lies in the folder of the assembly, and once more above it. Its parts lie in
        the folder of the assembly, or above it where each delivery overwrites the one before.
        """
        year, number = int(month[:4]), int(month[5:])
        after = f"{year + number // 12}{number % 12 + 1:02d}01"
        folder = f"exports/report/{year}{number:02d}01-{after}"
        keys = []
        for place, cost in enumerate(costs):
            own = "" if overwrites else f"/{assembly}"
            keys.append(f"{folder}{own}/report-{place + 1}.csv.gz")
            if place < len(costs) - leave_out:
                row = {legacy_name(name): value
                       for name, value in cur_row(month, cost, place).items()}  # fmt: skip
                self.put(keys[-1], part([row], "csv.gz"))
        document = {
            "assemblyId": assembly,
            "account": "0011",
            "reportName": "report",
            "billingPeriod": {"start": f"{year}{number:02d}01T000000.000Z",
                              "end": f"{after}T000000.000Z"},
            "bucket": self.name,
            "reportKeys": keys.copy(),
        }  # fmt: skip
        text = json.dumps(document).encode()
        self.put(f"{folder}/{assembly}/report-Manifest.json", text, written)
        self.put(f"{folder}/report-Manifest.json", text, written)
        return keys


def cur_row(month: str, cost: object, place: int = 0) -> dict[str, Any]:
    return {
        **CUR,
        "line_item_resource_id": f"i-{place}",
        "bill_billing_period_start_date": f"{month}-01T00:00:00.000Z",
        "line_item_usage_start_date": f"{month}-02T03:00:00Z",
        "line_item_usage_end_date": f"{month}-02T04:00:00Z",
        "line_item_unblended_cost": str(cost),
    }


def focus_row(month: str, cost: object) -> dict[str, Any]:
    year, number = int(month[:4]), int(month[5:])
    return {
        **FOCUS,
        "BillingPeriodStart": f"{month}-01T00:00:00Z",
        "BillingPeriodEnd": f"{year + number // 12}-{number % 12 + 1:02d}-01T00:00:00Z",
        "ChargePeriodStart": f"{month}-02T03:00:00Z",
        "ChargePeriodEnd": f"{month}-02T04:00:00Z",
        "BilledCost": str(cost),
        "EffectiveCost": str(cost),
    }


def legacy_name(name: str) -> str:
    """`line_item_usage_type` as the legacy report spells it: `lineItem/UsageType`."""
    for plain, spelled in (("line_item", "lineItem"), ("bill", "bill"), ("pricing", "pricing")):
        if name.startswith(f"{plain}_"):
            rest = name.removeprefix(f"{plain}_").split("_")
            return f"{spelled}/{''.join(word.capitalize() for word in rest)}"
    raise KeyError(name)


def part(rows: Sequence[dict[str, Any]], ending: str) -> bytes:
    """One file of the rows: `csv.gz` or `snappy.parquet`, money as a float there, as AWS has it."""
    if ending.endswith("parquet"):
        typed = [
            {name: float(value) if name.endswith(("cost", "amount")) else value
             for name, value in row.items()}
            for row in rows
        ]  # fmt: skip
        content = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(typed), content, compression="snappy")
        return content.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), 1, mtime=0)


@dataclass
class Puller:
    """A store, and pulls of a bucket into it."""

    bucket: Bucket
    folder: Path
    prefix: str = "exports"

    def pull(self, force: bool = False, day: date = DAY, **options: Any) -> Fetched:
        place = f"s3://{self.bucket.name}/{self.prefix}"
        task = FetchTask(
            name="aws-prod",
            options={"kind": "aws", "billing": place, **options},
            store=Store.open(self.folder / "store"),
            landing=self.folder / "landing",
            as_of=day,
            force=force,
        )
        fetched = fetch(task)
        task.store.close()
        return fetched

    def costs(self) -> dict[str, Decimal]:
        """The effective cost in the store by billing period."""
        store = Store.open(self.folder / "store")
        table = totals(store.table("billing", _engine()), ["billing_period"])
        store.close()
        return dict(zip(table["billing_period"], table["effective_cost"], strict=True))

    def downloads(self) -> list[str]:
        """What lies in the landing besides what it remembers."""
        objects = self.folder / "landing" / "objects"
        return sorted(path.name for path in objects.rglob("*") if path.is_file())


def told(fetched: Fetched) -> list[tuple[str, str]]:
    """Status and period of each delivery."""
    return [(str(one.status), ",".join(one.billing_periods)) for one in fetched.deliveries]


def at(day: int, hour: int = 0, month: int = 11) -> datetime:
    """A time of 2026."""
    return datetime(2026, month, day, hour, tzinfo=UTC)
