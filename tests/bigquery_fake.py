"""A small server in the shape of BigQuery's REST interface, with prices and faults on request.

It knows the three queries of a pull by what they ask for: partitions, counts of charges, one month
in normal form. Shapes: BigQuery REST reference (tables.get, jobs.insert, jobs.getQueryResults).
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from data.hourly import ROWS
from data.schema import BILLING, Dtype
from providers.contract import FINISHED_LATER
from providers.gcp.billing import FINDINGS

PROJECT, DATASET, TABLE = "bills", "billing", "gcp_billing_export_resource_v1_01"
NAME = f"{PROJECT}.{DATASET}.{TABLE}"
_REASONS = {403: "accessDenied", 404: "notFound", 429: "rateLimitExceeded", 503: "backendError"}
_KINDS = {Dtype.TIME: "TIMESTAMP", Dtype.BOOL: "BOOLEAN", Dtype.INT: "INTEGER"}
_TRAVELLING = [
    (column.name, _KINDS.get(column.dtype, "STRING"))
    for column in BILLING.columns
    if column.name not in (*FINISHED_LATER, "source_row_no")
] + [*((name, "BOOLEAN") for name in FINDINGS), (ROWS, "INTEGER")]


def _text(name: str) -> dict[str, Any]:
    return {"name": name, "type": "STRING", "mode": "NULLABLE"}


def _record(name: str, *inner: dict[str, Any], mode: str = "NULLABLE") -> dict[str, Any]:
    return {"name": name, "type": "RECORD", "mode": mode, "fields": list(inner)}


SCHEMA = [
    _text("billing_account_id"),
    _record("service", _text("id"), _text("description")),
    _record("sku", _text("id"), _text("description")),
    {"name": "usage_start_time", "type": "TIMESTAMP"},
    {"name": "usage_end_time", "type": "TIMESTAMP"},
    _record("project", _text("id")),
    _record("resource", _text("name"), _text("global_name")),
    {"name": "cost", "type": "FLOAT"},
    _text("currency"),
    _record("credits", _text("type"), _text("name"), {"name": "amount", "type": "FLOAT"},
            mode="REPEATED"),
    _record("invoice", _text("month")),
    {"name": "export_time", "type": "TIMESTAMP"},
]  # fmt: skip


@dataclass
class BigQuery:
    """A table's partitions and months, and what is to go wrong with the next requests.

    `days` has rows and last export time (microseconds) by day and invoice month; `months` the
    answer by invoice month, in normal form; `dry_bytes` what a dry run tells; `faults` are taken in
    order, each by the first request it fits: ("table"|"query"|"dry", status) or ("list", 403).
    """

    days: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    months: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    dry_bytes: int = 1000
    billed: int = 10_485_760
    field_name: str | None = None
    faults: list[tuple[str, int]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    configurations: list[dict[str, Any]] = field(default_factory=list)
    page: int = 2

    def __enter__(self) -> BigQuery:
        self._jobs: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def pulls(self) -> list[str]:
        """The queries that asked for a month and ran, in order."""
        return [sql for sql in self.asked if "AS counted" not in sql and "PARTITIONS" not in sql]

    def table(self) -> dict[str, Any]:
        reference = {"projectId": PROJECT, "datasetId": DATASET, "tableId": TABLE}
        partitioning = {"type": "DAY"} | ({"field": self.field_name} if self.field_name else {})
        return {
            "tableReference": reference,
            "type": "TABLE",
            "location": "EU",
            "schema": {"fields": SCHEMA},
            "timePartitioning": partitioning,
        }

    def begin(self, body: dict[str, Any]) -> dict[str, Any]:
        configuration = body["configuration"]
        sql = configuration["query"]["query"]
        self.configurations.append(configuration)
        number = f"job{len(self._jobs)}"
        self._jobs[number] = sql
        if not configuration.get("dryRun"):
            self.asked.append(sql)
        query = {"totalBytesProcessed": str(self.dry_bytes), "totalBytesBilled": str(self.billed),
                 "statementType": "SELECT"}  # fmt: skip
        return {
            "jobReference": {"projectId": PROJECT, "jobId": number, "location": "EU"},
            "configuration": configuration,
            "status": {"state": "DONE"},
            "statistics": {"query": query},
        }

    def rows(self, number: str, start: int) -> dict[str, Any]:
        names, rows = self._answer(self._jobs[number])
        page = rows[start : start + self.page]
        more = start + self.page < len(rows)
        cells = [{"f": [{"v": _cell(row.get(name), kind)} for name, kind in names]} for row in page]
        return {
            "jobReference": {"projectId": PROJECT, "jobId": number, "location": "EU"},
            "jobComplete": True,
            "totalRows": str(len(rows)),
            "schema": {"fields": [{"name": name, "type": kind} for name, kind in names]},
            "rows": cells,
        } | ({"pageToken": str(start + self.page)} if more else {})

    def _answer(self, sql: str) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
        if "PARTITIONS" in sql:
            rows = [
                {"partition_id": day, "total_rows": sum(rows for rows, _ in many.values()),
                 "modified": max(newest for _, newest in many.values())}
                for day, many in self.days.items()
            ]  # fmt: skip
            kinds = ("STRING", "INTEGER", "INTEGER")
            return list(zip(("partition_id", "total_rows", "modified"), kinds, strict=True)), rows
        if "AS counted" in sql:
            rows = [
                {"day": day, "month": month.replace("-", ""), "counted": counted, "newest": newest}
                for day, many in self.days.items()
                if _is_asked(sql, day)
                for month, (counted, newest) in many.items()
            ]
            kinds4 = ("STRING", "STRING", "INTEGER", "INTEGER")
            names = ("day", "month", "counted", "newest")
            return list(zip(names, kinds4, strict=True)), rows
        month = re.findall(r"= '(\d{6})'", sql)[0]
        return _TRAVELLING, self.months[f"{month[:4]}-{month[4:]}"]


def _is_asked(sql: str, day: str) -> bool:
    """Whether a condition of the query on partitions holds for the day."""
    iso = f"{day[:4]}-{day[4:6]}-{day[6:]}"
    ranges = re.findall(r">= TIMESTAMP '([0-9-]+)'(?: AND \S+ < TIMESTAMP '([0-9-]+)')?", sql)
    assert ranges, "a query without a condition on its partitions"
    return any(first <= iso and (not end or iso < end) for first, end in ranges)


def _cell(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    return str(value).lower() if kind == "BOOLEAN" else str(value)


def _handler(server: BigQuery) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if "/tables/" in place.path:
                self._send("table", server.table)
                return
            number = place.path.rpartition("/")[2]
            token = re.search(r"pageToken=(\d+)", place.query)
            start = int(token[1]) if token else 0
            empty = "maxResults=0" in place.query
            self._send("rows", lambda: server.rows(number, start) | ({"rows": []} if empty else {}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            is_dry = body["configuration"].get("dryRun")
            what = "dry" if is_dry else "query"
            if is_dry and "PARTITIONS" in body["configuration"]["query"]["query"]:
                what = "list"
            self._send(what, lambda: server.begin(body))

        def _send(self, what: str, answer: Any) -> None:
            status = next((code for kind, code in server.faults if kind == what), 200)
            if status != 200:
                server.faults.remove((what, status))
                message = f"made to fail with {status}"
                error = {"reason": _REASONS[status], "message": message}
                document = {"error": {"code": status, "message": message, "errors": [error]}}
            else:
                document = answer()
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler
