"""Where an Azure export lies: the account, the container and the folder that an address names.

Forms: "Naming and referencing containers, blobs, and metadata" and "Use the Azure Data Lake Storage
Gen2 URI" of the Azure Storage documentation, read 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from data.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMS = (
    "write https://ACCOUNT.blob.core.windows.net/CONTAINER/FOLDER "
    "or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
)
_HOST = re.compile(
    r"(?P<account>[a-z0-9]{3,24})(?P<zone>(?:\.[a-z0-9-]+)*)\.(?:blob|dfs)\.(?P<suffix>[a-z0-9.-]+)"
)
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}|\$(?:root|web|logs)")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
# An emulator has its account in the path, since it has no names of its own.
_HERE = ("127.0.0.1", "localhost", "::1")
_EMULATED = "devstoreaccount1"


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """A folder of a container; `folder` is empty or ends with a slash.

    >>> BlobPlace.of("abfss://bills@acme.dfs.core.windows.net/exports/daily")
    BlobPlace(endpoint='https://acme.blob.core.windows.net', account='acme', container='bills', \
folder='exports/daily/')
    """

    endpoint: str
    account: str
    container: str
    folder: str

    @property
    def shown(self) -> str:
        """The container for people."""
        return f"{self.endpoint}/{self.container}"

    @classmethod
    def of(cls, address: str) -> BlobPlace:
        """The place that the address names.

        Raises ConfigError for an address of another form, and for one that holds a signature or a
        login; neither is repeated in the message.
        """
        parts = urlsplit(address.strip())
        if parts.query or parts.fragment or parts.password is not None:
            what = "holds a signature or a login, which is a secret"
            remedy = (
                "write the address without it; credentials come from the Azure SDK's own chain, "
                "client_secret_env, or AZURE_STORAGE_CONNECTION_STRING"
            )
            raise _wrong(what, remedy)
        try:
            found = _abfss(parts) if parts.scheme in ("abfss", "abfs") else _https(parts)
        except ValueError:  # a port that is no number, or half a bracket
            found = None
        if found is None:
            raise _wrong("is not the address of a folder in Blob Storage", _FORMS)
        if not _CONTAINER.fullmatch(found.container):
            raise _wrong(f"{found.container!r} cannot be the name of a container", _FORMS)
        return found


def account_of(connection_string: str) -> str | None:
    """The account that a connection string is of; None where it names none.

    >>> account_of("AccountName=acme;AccountKey=x;EndpointSuffix=core.windows.net")
    'acme'
    """
    pairs = (part.split("=", 1) for part in connection_string.split(";") if "=" in part)
    told: Mapping[str, str] = {key.strip().lower(): value.strip() for key, value in pairs}
    if told.get("usedevelopmentstorage") == "true":
        return _EMULATED
    if told.get("accountname"):
        return told["accountname"]
    parts = urlsplit(told.get("blobendpoint", ""))
    if parts.hostname in _HERE:
        return parts.path.strip("/").partition("/")[0] or None
    host = _HOST.fullmatch(parts.hostname or "")
    return host["account"] if host else None


def _wrong(what: str, remedy: str) -> ConfigError:
    return ConfigError("the billing export of Azure cannot be found", [
        Problem("billing", what, remedy)
    ])  # fmt: skip


def _https(parts: SplitResult) -> BlobPlace | None:
    steps = _steps(parts.path)
    if parts.username is not None or not steps:
        return None
    if parts.hostname in _HERE and parts.scheme in ("http", "https") and len(steps) > 1:
        account, container, *folder = steps
        if not _ACCOUNT.fullmatch(account):
            return None
        endpoint = f"{parts.scheme}://{parts.netloc}/{account}"
        return BlobPlace(endpoint, account, container, _folder(folder))
    host = _HOST.fullmatch(parts.hostname or "")
    if parts.scheme != "https" or host is None or parts.port is not None:
        return None
    return BlobPlace(_endpoint(host), host["account"], steps[0], _folder(steps[1:]))


def _abfss(parts: SplitResult) -> BlobPlace | None:
    host = _HOST.fullmatch(parts.hostname or "")
    if host is None or not parts.username or parts.port is not None:
        return None
    return BlobPlace(_endpoint(host), host["account"], parts.username, _folder(_steps(parts.path)))


def _endpoint(host: re.Match[str]) -> str:
    return f"https://{host['account']}{host['zone']}.blob.{host['suffix']}"


def _steps(path: str) -> list[str]:
    return [step for step in unquote(path).split("/") if step]


def _folder(steps: list[str]) -> str:
    return "".join(f"{step}/" for step in steps)
