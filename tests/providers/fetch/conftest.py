"""One moto server for each module of tests, and a bucket of its own for each test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.providers.fetch.aws_exports import Bucket, Puller
from tests.providers.fetch.s3_server import Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture
def bucket(server: Server) -> Bucket:
    server.faults.clear()
    server.asked.clear()
    server.before.clear()
    return Bucket(server, f"bills-{next(_numbers)}")


@pytest.fixture
def puller(bucket: Bucket, tmp_path: Path) -> Puller:
    return Puller(bucket, tmp_path)
