"""What an error of Google's SDKs means for a person: what failed, where, and the role to grant.

Answers of the sign-in service are not repeated, only its error codes. Reasons and codes: "BigQuery
error messages", "Cloud Storage HTTP status and error codes", read 2026-11.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import requests
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError

from data.errors import MissingCredentials, Problem, ProviderError, ProviderUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_OAUTH_CODE = re.compile(r"\b(invalid_[a-z_]+|unauthorized_client|access_denied)\b")
_SIGN_IN = (
    "run `gcloud auth application-default login`, run as a service account, or set "
    "GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key"
)
_AGAIN = "run fetch again later; what was read is kept"
_BUSY = (408, 429, 500, 502, 503, 504)
_BUSY_REASONS = ("rateLimitExceeded", "backendError", "quotaExceeded", "jobRateLimitExceeded")
_TOO_MUCH = "bytesBilledLimitExceeded"
_LONGEST = 400


@contextmanager
def told(where: str, remedy: str) -> Iterator[None]:
    """Errors of the SDKs as ours; `where` names the object, `remedy` what grants access to it."""
    try:
        yield
    except RetryError as error:
        cause = error.cause
        if isinstance(cause, GoogleAPICallError | GoogleAuthError):
            raise mapped(cause, where, remedy) from None
        raise _unavailable(where, "it does not answer") from None
    except (GoogleAPICallError, GoogleAuthError) as error:
        raise mapped(error, where, remedy) from None
    except requests.exceptions.RequestException:
        raise _unavailable(where, "it cannot be reached, or the connection was cut") from None


def mapped(error: GoogleAPICallError | GoogleAuthError, where: str, remedy: str) -> ProviderError:
    """The error as one of ours."""
    if isinstance(error, GoogleAuthError):
        return not_signed_in(error, where)
    status, reason = int(error.code or 0), _reason(error)
    words = _words(error)
    if status == 401:
        problem = Problem(where, f"the credentials are refused ({words})", _SIGN_IN)
        return MissingCredentials("gcp: not signed in", [problem])
    if status in _BUSY or reason in _BUSY_REASONS:
        return _unavailable(where, f"the service does not answer now (HTTP {status}: {words})")
    if status == 412:
        return _unavailable(where, "it changed after it was listed")
    if is_disabled(error):
        fix = "enable the API in the project that asks, or ask from another one"
        return ProviderError("gcp: an API is off", [Problem(where, words, fix)])
    if reason == _TOO_MUCH:
        fix = "raise max_bytes_billed of the source"
        return ProviderError("gcp: a query would read too much", [Problem(where, words, fix)])
    what = {403: "access is refused", 404: "there is no such thing, or it is hidden"}.get(status)
    shown = f"{what} ({words})" if what else f"HTTP {status}: {words}"
    return ProviderError(
        "gcp: the export cannot be read",
        [Problem(where, shown, remedy if status in (403, 404) else "")],
    )


def not_signed_in(error: GoogleAuthError, where: str) -> ProviderError:
    """Why no credentials were found, or why they were refused."""
    if isinstance(error, TransportError):
        return _unavailable(where, "the sign-in service cannot be reached")
    if isinstance(error, DefaultCredentialsError):
        what = _short(str(error.args[0]) if error.args else "no credentials were found")
    else:
        codes = ", ".join(dict.fromkeys(_OAUTH_CODE.findall(str(error))))
        what = f"the credentials are refused ({codes or type(error).__name__})"
    return MissingCredentials("gcp: not signed in", [Problem(where, what, _SIGN_IN)])


def is_disabled(error: GoogleAPICallError) -> bool:
    """Whether the API that was called is not enabled in the project that asked."""
    known = ("SERVICE_DISABLED", "accessNotConfigured")
    return _reason(error) in known or "has not been used in project" in str(error.message)


def _reason(error: GoogleAPICallError) -> str:
    if error.reason:
        return str(error.reason)
    first = next(iter(error.errors or ()), None)
    return str(first.get("reason", "")) if isinstance(first, dict) else ""


def _words(error: GoogleAPICallError) -> str:
    """The service's own words, without the address of the request that they begin with."""
    first = next(iter(error.errors or ()), None)
    text = str(first.get("message", "")) if isinstance(first, dict) else ""
    text = text or re.sub(r"^(GET|POST|PUT|PATCH) \S+: ", "", str(error.message))
    return _short(text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _unavailable(where: str, what: str) -> ProviderUnavailable:
    return ProviderUnavailable("gcp: the export cannot be read now", [Problem(where, what, _AGAIN)])
