"""Pulls the cost exports of an Azure source from its container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem
from providers.azure.blob import BlobContainer
from providers.azure.places import BlobPlace
from providers.fetch.exports import pull_exports

if TYPE_CHECKING:
    from providers.fetch.contract import Fetched, FetchTask


def fetch(task: FetchTask) -> Fetched:
    """What became of the pull of every export in the source's folder.

    Actual, amortized and FOCUS exports of one folder are each read as what their manifests say.
    """
    address = task.options.get("billing")
    if not address:
        remedy = "write https://ACCOUNT.blob.core.windows.net/CONTAINER/FOLDER"
        where = f"sources.{task.name}.billing"
        raise ConfigError("an Azure source without an export", [Problem(where, "missing", remedy)])
    place = BlobPlace.of(str(address))
    container = BlobContainer(place, task.options, os.environ)
    return pull_exports(container, place.folder, task)
