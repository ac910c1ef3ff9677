"""Where a Google Cloud source says its billing lies: a BigQuery table, or a folder of a bucket."""

from __future__ import annotations

import re
from dataclasses import dataclass

from data.errors import ConfigError, Problem

_TABLE = re.compile(
    r"(?P<project>[A-Za-z0-9][A-Za-z0-9.:_-]*)\.(?P<dataset>\w+)\.(?P<table>[\w-]+)"
)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_REMEDY = (
    'write "bigquery://PROJECT.DATASET.TABLE" (the table of the detailed export), or '
    '"gs://BUCKET/FOLDER" where it is extracted to'
)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table of BigQuery."""

    project: str
    dataset: str
    table: str

    @property
    def name(self) -> str:
        """The whole name of the table."""
        return f"{self.project}.{self.dataset}.{self.table}"

    @property
    def shown(self) -> str:
        """The table for people."""
        return f"bigquery://{self.name}"

    @property
    def sql(self) -> str:
        """The table as SQL names it."""
        return f"`{self.project}`.`{self.dataset}`.`{self.table}`"


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """A folder of a bucket of Cloud Storage."""

    bucket: str
    folder: str

    @property
    def shown(self) -> str:
        """The bucket for people."""
        return f"gs://{self.bucket}"


def place_of(billing: object, where: str) -> TablePlace | BucketPlace:
    """The place that the configuration names.

    `where` is the key that holds it. Raises ConfigError for anything that is no such place.

    >>> place_of("bigquery://ml-bills.billing.gcp_billing_export_resource_v1_AB", "x").name
    'ml-bills.billing.gcp_billing_export_resource_v1_AB'
    >>> place_of("gs://bills/gcp/detailed", "x")
    BucketPlace(bucket='bills', folder='gcp/detailed')
    """
    text = str(billing or "").strip()
    if text.startswith("gs://"):
        bucket, _, folder = text.removeprefix("gs://").partition("/")
        if _BUCKET.fullmatch(bucket):
            return BucketPlace(bucket, folder.strip("/"))
    found = _TABLE.fullmatch(text.removeprefix("bigquery://"))
    if found:
        return TablePlace(found["project"], found["dataset"], found["table"])
    what = f"{text!r} is no table of BigQuery and no folder of a bucket" if text else "missing"
    raise ConfigError("a GCP source without an export", [Problem(where, what, _REMEDY)])
