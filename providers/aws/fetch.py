"""Pulls the billing exports of an AWS source from their bucket."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem
from providers.aws.s3 import S3Bucket
from providers.aws.session import sign_in
from providers.fetch.exports import pull_exports

if TYPE_CHECKING:
    from providers.fetch.contract import Fetched, FetchTask

_PLACE = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")


def place_of(address: str) -> tuple[str, str]:
    """The bucket and the prefix of an address; ConfigError where it is none.

    >>> place_of("s3://my-bucket/exports/gpu")
    ('my-bucket', 'exports/gpu')
    """
    found = _PLACE.fullmatch(address)
    if found is None:
        remedy = "write s3://BUCKET/PREFIX/EXPORT-NAME"
        raise ConfigError(
            "the export of an AWS source is a place in S3", [Problem("billing", address, remedy)]
        )
    return found["bucket"], found["prefix"] or ""


def fetch(task: FetchTask) -> Fetched:
    """What became of the pull of the exports under the source's prefix."""
    bucket, prefix = place_of(str(task.options.get("billing") or ""))
    signed_in = sign_in(task.options, os.environ)
    return pull_exports(S3Bucket(signed_in, bucket), prefix, task)
