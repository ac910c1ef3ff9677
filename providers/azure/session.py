"""How a source signs in to Azure: an application's secret, a connection string, or the SDK's chain.

Secrets come from the environment alone. Rules: azure-identity "DefaultAzureCredential" and
azure-storage-blob, read 2026-11.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from data.errors import ConfigError, MissingCredentials, Problem
from providers.azure.failures import mapped
from providers.azure.places import BlobPlace, account_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.credentials import TokenCredential
    from azure.storage.blob import BlobServiceClient

CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
_AUTHORITY = "AZURE_AUTHORITY_HOST"
_PUBLIC_AUTHORITY = re.compile(
    r"login\.(microsoftonline\.(com|us|de)|chinacloudapi\.cn|partner\.microsoftonline\.cn"
    r"|windows\.net|microsoft\.com)"
)
_SCOPE = "https://storage.azure.com/.default"  # of every cloud of Azure
# The SDK's loggers quote signed addresses, and answers of the identity service.
_QUOTING = {"azure": logging.CRITICAL, "msal": logging.CRITICAL, "urllib3": logging.WARNING}
# One request fetches at most this many bytes, and at most as many are held per download.
CHUNK = 8 * 1024 * 1024
_CONNECT_SECONDS, _READ_SECONDS = 20, 60


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A client of the account, and how it signs in, in words without any secret."""

    client: BlobServiceClient
    how: str


def sign_in(
    place: BlobPlace, options: Mapping[str, Any], environment: Mapping[str, str]
) -> SignedIn:
    """A client of the place's account, with a token where it needs one.

    Raises MissingCredentials where the variable that is to hold the secret is not set or no token
    is given, and ConfigError where the secret has no application.
    """
    for name, level in _QUOTING.items():
        logging.getLogger(name).setLevel(level)
    try:
        if options.get("client_secret_env"):
            return _client(place, options, *_application(options, environment))
        text = environment.get(CONNECTION_STRING, "")
        if text and account_of(text) == place.account:
            return _by_connection_string(text)
        return _client(place, options, *_chain(options))
    except ValueError as error:  # how the SDK refuses a tenant, an authority or an address
        what = f"the SDK refuses how it is to sign in ({type(error).__name__})"
        remedy = f"look at tenant_id and client_id of the source, and at {_AUTHORITY}"
        problem = Problem(place.shown, what, remedy)
        raise MissingCredentials("azure: not signed in", [problem]) from None


def _application(
    options: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[TokenCredential, str]:
    from azure.identity import ClientSecretCredential

    name = str(options["client_secret_env"])
    lacking = [key for key in ("tenant_id", "client_id") if not options.get(key)]
    if lacking:
        raise ConfigError(
            "a client secret needs its application",
            [Problem(key, "missing beside client_secret_env", "add it") for key in lacking],
        )
    secret = environment.get(name, "").strip()
    if not secret:
        what = "the environment variable is not set, or empty"
        remedy = f"set it to a client secret of the application {options['client_id']}"
        raise MissingCredentials("azure: no client secret", [Problem(name, what, remedy)])
    host = environment.get(_AUTHORITY, "")
    found = ClientSecretCredential(
        str(options["tenant_id"]),
        str(options["client_id"]),
        secret,
        # An authority of a private cloud is unknown to Microsoft's directory of authorities.
        disable_instance_discovery=bool(host) and not _is_public(host),
    )
    return found, f"the application {options['client_id']} with its secret from {name}"


def _is_public(host: str) -> bool:
    name = urlsplit(host if "://" in host else f"https://{host}").hostname or ""
    return _PUBLIC_AUTHORITY.fullmatch(name) is not None


def _chain(options: Mapping[str, Any]) -> tuple[TokenCredential, str]:
    from azure.identity import DefaultAzureCredential

    told: dict[str, Any] = {}
    if options.get("client_id"):
        told["managed_identity_client_id"] = str(options["client_id"])
    if options.get("tenant_id"):
        tenant = str(options["tenant_id"])
        told |= {"workload_identity_tenant_id": tenant, "additionally_allowed_tenants": [tenant]}
    return DefaultAzureCredential(**told), "the default credential chain of the Azure SDK"


def _client(
    place: BlobPlace, options: Mapping[str, Any], credential: TokenCredential, how: str
) -> SignedIn:
    from azure.core.exceptions import AzureError
    from azure.storage.blob import BlobServiceClient

    tenant = str(options["tenant_id"]) if options.get("tenant_id") else None
    try:
        # The storage client would ask for a token again and again before it gives up.
        credential.get_token(_SCOPE, tenant_id=tenant)
    except AzureError as error:
        raise mapped(error, place.shown, how) from None
    return SignedIn(BlobServiceClient(place.endpoint, credential=credential, **_transfer()), how)


def _by_connection_string(text: str) -> SignedIn:
    from azure.storage.blob import BlobServiceClient

    try:
        client = BlobServiceClient.from_connection_string(text, **_transfer())
    except ValueError:
        what, remedy = "is no connection string of a storage account", "copy it again, whole"
        problem = Problem(CONNECTION_STRING, what, remedy)
        raise MissingCredentials("azure: no usable connection string", [problem]) from None
    return SignedIn(client, CONNECTION_STRING)


def _transfer() -> dict[str, Any]:
    from azure.storage.blob import ExponentialRetry

    return {
        # Waits of about 3, 5, 9 and 17 seconds where the service is busy.
        "retry_policy": ExponentialRetry(initial_backoff=1, increment_base=2, retry_total=4,
                                         random_jitter_range=1, retry_status=4),
        "max_single_get_size": CHUNK,
        "max_chunk_get_size": CHUNK,
        "connection_timeout": _CONNECT_SECONDS,
        "read_timeout": _READ_SECONDS,
    }  # fmt: skip
