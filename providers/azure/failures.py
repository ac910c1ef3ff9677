"""What an error of the Azure SDK means for a person, without what it quotes.

The SDK's own words can hold signed URLs and answers of the identity service, so that only error
codes are taken over. Codes: "Blob Storage error codes" and "Microsoft Entra authentication error
codes", read 2026-11.
"""

from __future__ import annotations

import re

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
)

from data.errors import MissingCredentials, Problem, ProviderError, ProviderUnavailable

_ENTRA_CODE = re.compile(r"AADSTS\d+")
_READER = "give it the role Storage Blob Data Reader on the container"
_AGAIN = "run fetch again later; what was downloaded is kept"
# Code of the service -> what it means, and what to do.
_KNOWN = {
    "ContainerNotFound": ("there is no such container", "name the one that the export writes to"),
    "ContainerBeingDeleted": ("the container is being deleted", "name another container"),
    "BlobNotFound": ("it is gone since it was listed", "run fetch again"),
    "BlobArchived": ("it is in the archive tier", "rehydrate it, or export the period again"),
    "AuthorizationFailure": ("access is refused", "let this host through the account's firewall, "
                             f"and {_READER}"),
    "AuthorizationPermissionMismatch": ("access is refused", _READER),
    "InsufficientAccountPermissions": ("access is refused", _READER),
    "PublicAccessNotPermitted": ("access is refused", _READER),
    "KeyBasedAuthenticationNotPermitted": ("it allows no keys", "sign in with an identity"),
    "AccountIsDisabled": ("the storage account is disabled", "enable it"),
    "ConditionNotMet": ("it changed after it was listed", "run fetch again"),
    "TargetConditionNotMet": ("it changed after it was listed", "run fetch again"),
    "InvalidRange": ("it changed after it was listed", "run fetch again"),
    "ServerBusy": ("the account is throttled", _AGAIN),
}  # fmt: skip
_CHANGED = ("ConditionNotMet", "TargetConditionNotMet", "InvalidRange")
_UNSIGNED = (401,)
_BUSY = (408, 429, 500, 502, 503, 504)


def mapped(error: AzureError, where: str, how: str) -> ProviderError:
    """The error as one of ours; `where` names the object, `how` the way of signing in."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return _of_answer(error, error.status_code, where, how)
    if isinstance(error, ClientAuthenticationError):
        return _not_signed_in(where, how, _ENTRA_CODE.findall(str(error.message)))
    if isinstance(error, ServiceRequestError):
        remedy = "check the account's name, and that this host reaches it"
        return _unavailable(Problem(where, "it cannot be reached", remedy))
    return _unavailable(Problem(where, "the connection was cut", _AGAIN))


def _of_answer(error: HttpResponseError, status: int, where: str, how: str) -> ProviderError:
    code = _code(error)
    if status in _UNSIGNED or code in ("AuthenticationFailed", "NoAuthenticationInformation"):
        return _not_signed_in(where, how, [code] if code else [])
    if isinstance(error, ClientAuthenticationError) and status == 400:  # of the identity service
        return _not_signed_in(where, how, _ENTRA_CODE.findall(str(error.message)))
    what, remedy = _KNOWN.get(code, ("", ""))
    if status == 403:
        what, remedy = what or "access is refused", remedy or _READER
    if status in _BUSY:
        what, remedy = what or "the service does not answer now", remedy or _AGAIN
    if status == 412:
        what, remedy = what or "it changed after it was listed", remedy or "run fetch again"
    told = f"HTTP {status} {code}".strip()
    problem = Problem(where, f"{what} ({told})" if what else told, remedy)
    if status in _BUSY or status == 412 or code in _CHANGED or code == "BlobNotFound":
        return _unavailable(problem)
    return ProviderError("azure: the export cannot be read", [problem])


def _code(error: HttpResponseError) -> str:
    """The service's error code, as a word; nothing else of its answer is repeated."""
    told = getattr(error, "error_code", None)
    if told is None and error.response is not None:
        told = getattr(error.response, "headers", {}).get("x-ms-error-code")
    found = re.fullmatch(r"[A-Za-z0-9]{1,80}", str(getattr(told, "value", told) or ""))
    return found[0] if found else ""


def _not_signed_in(where: str, how: str, codes: list[str]) -> MissingCredentials:
    told = f" ({', '.join(dict.fromkeys(codes))})" if codes else ""
    what = f"{how} gave no valid credentials{told}"
    remedy = (
        "sign in with `az login`, run as a managed identity, or set tenant_id, client_id and "
        f"client_secret_env; then {_READER}"
    )
    return MissingCredentials("azure: not signed in", [Problem(where, what, remedy)])


def _unavailable(problem: Problem) -> ProviderUnavailable:
    return ProviderUnavailable("azure: the export cannot be read now", [problem])
