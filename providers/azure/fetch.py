"""Pulls the cost exports of an Azure source from its container."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from data.errors import ConfigError, Problem
from providers.azure.blob import BlobContainer
from providers.azure.places import BlobPlace
from providers.fetch.exports import pull_exports

if TYPE_CHECKING:
    from providers.fetch.contract import Fetched, FetchTask
    from providers.files.manifests import Manifest

_UNTOLD = ""
# Types of exports in manifests: Cost Management "Exports - Create Or Update", read 2026-11. The
# short form of a manifest, and the older type Usage, say nothing of the view.
_VIEWS = {
    "": _UNTOLD,
    "usage": _UNTOLD,
    "actualcost": "actual",
    "amortizedcost": "amortized",
    "focuscost": "focus",
}


def fetch(task: FetchTask) -> Fetched:
    """What became of the pull of the cost exports in the source's folder.

    Each is read as what its manifest says. `dataset` chooses among them; exports of prices and of
    reservations are left out.
    """
    address = task.options.get("billing")
    if not address:
        remedy = "write https://ACCOUNT.blob.core.windows.net/CONTAINER/FOLDER"
        where = f"sources.{task.name}.billing"
        raise ConfigError("an Azure source without an export", [Problem(where, "missing", remedy)])
    place = BlobPlace.of(str(address))
    container = BlobContainer(place, task.options, os.environ)
    chosen = task.options.get("dataset")
    seen: list[str] = []

    def is_wanted(manifest: Manifest) -> bool:
        view = _view(manifest)
        seen.append(manifest.export)
        return view is not None and view in (chosen or view, _UNTOLD)

    fetched = pull_exports(container, place.folder, task, is_wanted)
    if fetched.deliveries or not seen:
        return fetched
    what = f"{place.shown}/{place.folder}: no export of {chosen or 'cost'} is there"
    remedy = "name another folder" + (", or leave dataset out" if chosen else "")
    return replace(fetched, warnings=(*fetched.warnings, f"{what}: {remedy}"))


def _view(manifest: Manifest) -> str | None:
    """What the manifest says its export is: a dataset, _UNTOLD, or None for what is no cost."""
    _, _, told = manifest.export.rpartition("|")[0].rpartition("|")
    return _VIEWS.get(told.lower())
