"""The files of the bundled fleet, read without the product."""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache

from data.sample.generate import FLEET


def text_of(path):
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def csv_rows(folder, pattern):
    rows = []
    for path in sorted(folder.glob(pattern)):
        rows += csv.DictReader(text_of(path).decode().splitlines())
    assert rows, pattern
    return rows


@cache
def truth_of_the_fleet():
    return json.loads((FLEET / "truth.json").read_text())


@cache
def readings_of_the_fleet():
    """The rows of telemetry, each with the last segment of its instance's id; read once."""
    rows = csv_rows(FLEET, "utilization/*.csv.gz")
    for row in rows:
        row["instance_id"] = row["instance_id"].rsplit("/", 1)[-1]
    return rows
