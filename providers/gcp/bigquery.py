"""One table of BigQuery, read only: what it is made of, and queries tried dry before they run.

Every query is tried dry first, and refused where it would read more bytes than the source allows;
the same limit goes with the query. A query is retried by the SDK where BigQuery is busy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.errors import Problem, ProviderError
from providers.gcp.failures import told
from providers.gcp.projection import TableField, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from google.cloud.bigquery import Client, QueryJobConfig
    from google.cloud.bigquery.job import QueryJob

    from providers.gcp.places import TablePlace

log = logging.getLogger("loadfactor")
# 100 GiB: some months of the detailed export of a large account.
MAX_BYTES_BILLED = 100 * 1024**3
_GIB = 1024**3
_RETRY_SECONDS = 180.0
_REQUEST_SECONDS = 60.0
_QUERY_SECONDS = 1800.0
_PAGE_ROWS = 50_000
_INGESTED = "_PARTITIONTIME"
_DAILY = ("DAY", "HOUR")


@dataclass(frozen=True, slots=True)
class Partitions:
    """How a table is divided: the column whose day tells the partition, and the column's type."""

    column: str
    kind: str


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table is made of. `partitions` is None where its days are no partitions."""

    fields: tuple[TableField, ...]
    partitions: Partitions | None
    location: str | None


@dataclass(slots=True)
class Answer:
    """The rows of a query, page by page; `bytes` is what it was billed for."""

    pages: Iterator[pa.RecordBatch]
    bytes: int


class Warehouse:
    """A table and the client that asks it."""

    def __init__(
        self, client: Client, place: TablePlace, max_bytes: int, location: str | None = None
    ) -> None:
        """`max_bytes` is the most that one query may be billed for; `location` of the dataset."""
        self.place = place
        self._client = client
        self._max_bytes = max_bytes
        self._location = location

    def shape(self) -> Shape:
        """What the table is made of. Raises ProviderError where it cannot be looked at."""
        from google.cloud.bigquery import DEFAULT_RETRY

        with told(self.place.shown, self._remedy("roles/bigquery.dataViewer on the dataset")):
            table = self._client.get_table(
                self.place.name,
                retry=DEFAULT_RETRY.with_timeout(_RETRY_SECONDS),
                timeout=_REQUEST_SECONDS,
            )
        fields = fields_of(table.schema)
        self._location = self._location or table.location
        return Shape(fields, _partitions(table.time_partitioning, fields), self._location)

    def ask(self, sql: str) -> Answer:
        """The rows that the SQL gives.

        Raises ProviderError where it would be billed for more than the limit, or is refused;
        ProviderUnavailable where BigQuery does not answer.
        """
        with told(self.place.shown, self._remedy("roles/bigquery.jobUser on it")):
            needed = int(self._start(sql, dry=True).total_bytes_processed or 0)
            if needed > self._max_bytes:
                raise self._too_much(needed)
            job = self._start(sql, dry=False)
            rows = job.result(page_size=_PAGE_ROWS, timeout=_QUERY_SECONDS)
        billed = int(job.total_bytes_billed or 0)
        log.info("%s: %d bytes by dry run, %d billed", self.place.name, needed, billed)
        return Answer(self._pages(rows), billed)

    def _start(self, sql: str, *, dry: bool) -> QueryJob:
        from google.cloud.bigquery import DEFAULT_RETRY

        return self._client.query(
            sql,
            job_config=self._config(dry=dry),
            location=self._location,
            retry=DEFAULT_RETRY.with_timeout(_RETRY_SECONDS),
            timeout=_REQUEST_SECONDS,
        )

    def _config(self, *, dry: bool) -> QueryJobConfig:
        from google.cloud.bigquery import QueryJobConfig

        # A cached answer is of the same rows: BigQuery drops it when the table changes.
        config = QueryJobConfig(use_query_cache=not dry, labels={"tool": "loadfactor"})
        if dry:
            config.dry_run = True
        else:
            config.maximum_bytes_billed = self._max_bytes
        return config

    def _pages(self, rows: Any) -> Iterator[pa.RecordBatch]:
        with told(self.place.shown, self._remedy("roles/bigquery.jobUser on it")):
            yield from rows.to_arrow_iterable()

    def _too_much(self, needed: int) -> ProviderError:
        what = (
            f"the query would read {needed} bytes ({needed / _GIB:.1f} GiB by a dry run), and "
            f"max_bytes_billed is {self._max_bytes}: it was not run"
        )
        remedy = "raise max_bytes_billed of the source, if the bytes are worth it"
        problem = Problem(self.place.shown, what, remedy)
        return ProviderError("gcp: a query would read too much", [problem])

    def _remedy(self, role: str) -> str:
        return (
            "grant whoever asks roles/bigquery.dataViewer on the dataset "
            f"{self.place.dataset} and roles/bigquery.jobUser on the project {self._client.project}"
            if "jobUser" in role
            else f"grant whoever asks {role} {self.place.dataset}, and check the table's name"
        )


def _partitions(partitioning: Any, fields: tuple[TableField, ...]) -> Partitions | None:
    if partitioning is None or str(partitioning.type_ or "DAY").upper() not in _DAILY:
        return None
    if not partitioning.field:
        return Partitions(_INGESTED, "TIMESTAMP")
    named = [one for one in fields if one.name.lower() == partitioning.field.lower()]
    return Partitions(f"`{partitioning.field}`", named[0].kind) if named else None
