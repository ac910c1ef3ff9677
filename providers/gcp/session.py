"""How a source signs in to Google Cloud, and the clients of it: the SDK's default chain.

Order of the chain: Application Default Credentials, read 2026-11. Keys come from the file that
GOOGLE_APPLICATION_CREDENTIALS names, never from the configuration. The SDKs' own variables
(BIGQUERY_EMULATOR_HOST, STORAGE_EMULATOR_HOST) and gcloud's override of the Billing API's address
point a client elsewhere; it then signs in as nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data.errors import ConfigError, MissingCredentials, Problem
from providers.gcp.failures import not_signed_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.auth.credentials import Credentials
    from google.cloud.bigquery import Client as BigQueryClient
    from google.cloud.billing_v1 import CloudBillingClient
    from google.cloud.storage import Client as StorageClient  # type: ignore[import-untyped]  # same

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
BIGQUERY_HOST = "BIGQUERY_EMULATOR_HOST"
STORAGE_HOST = "STORAGE_EMULATOR_HOST"
BILLING_HOST = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
_KEY_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_NO_PROJECT = "none"


@dataclass(frozen=True, slots=True)
class Session:
    """The options of a source, and the environment that it runs in."""

    where: str
    options: Mapping[str, Any]
    environment: Mapping[str, str]

    def bigquery(self, project: str) -> BigQueryClient:
        """A client whose queries run in, and are billed to, the project."""
        from google.api_core.client_options import ClientOptions
        from google.cloud import bigquery

        host = self.environment.get(BIGQUERY_HOST)
        options = ClientOptions(api_endpoint=host) if host else None
        return bigquery.Client(
            project=project, credentials=self._credentials(host), client_options=options
        )

    def storage(self) -> StorageClient:
        """A client of Cloud Storage; it reads alone, so that no project is needed."""
        from google.cloud import storage

        host = self.environment.get(STORAGE_HOST)
        options = {"api_endpoint": host} if host else None
        return storage.Client(
            project=_NO_PROJECT, credentials=self._credentials(host), client_options=options
        )

    def billing(self) -> CloudBillingClient:
        """A client of the Cloud Billing API, over HTTP."""
        from google.api_core.client_options import ClientOptions
        from google.cloud import billing_v1

        host = self.environment.get(BILLING_HOST)
        options = ClientOptions(api_endpoint=host.rstrip("/")) if host else None
        return billing_v1.CloudBillingClient(
            credentials=self._credentials(host), transport="rest", client_options=options
        )

    def _credentials(self, elsewhere: str | None) -> Credentials:
        """Those of the default chain, or of the service account that they impersonate.

        Raises MissingCredentials where there are none, or the file that is named has none.
        """
        import google.auth
        from google.auth import impersonated_credentials
        from google.auth.credentials import AnonymousCredentials
        from google.auth.exceptions import GoogleAuthError

        if elsewhere:
            return AnonymousCredentials()  # type: ignore[no-untyped-call]  # no types
        try:
            found, _ = google.auth.default(scopes=_SCOPES)
        except GoogleAuthError as error:
            raise not_signed_in(error, self._key_file()) from None
        except (OSError, ValueError) as error:
            what = f"its file cannot be read: {type(error).__name__}"
            problem = Problem(self._key_file(), what, "name the file of a key that can be read")
            raise MissingCredentials("gcp: not signed in", [problem]) from None
        target = self.options.get("impersonate_service_account")
        if not target:
            return found
        return impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]  # no types
            source_credentials=found, target_principal=str(target), target_scopes=list(_SCOPES)
        )

    def _key_file(self) -> str:
        return _KEY_FILE if self.environment.get(_KEY_FILE) else self.where


def positive(options: Mapping[str, Any], name: str, default: int, where: str) -> int:
    """The option as a whole number above 0; ConfigError for anything else."""
    value = options.get(name)
    if value is None:
        return default
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number <= 0:
        problem = Problem(f"{where}.{name}", f"{value!r} is no number above 0", "write one")
        raise ConfigError(f"{where} is wrong", [problem])
    return number
