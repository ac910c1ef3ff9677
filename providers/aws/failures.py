"""What an error of the AWS SDK means for a person, without what it quotes.

The SDK's own words can hold key ids and what was signed, so that only error codes are taken over.
Codes: "Amazon S3 error responses" and AWS STS "Common errors", read 2026-11.
"""

from __future__ import annotations

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from data.errors import MissingCredentials, Problem, ProviderError, ProviderUnavailable

_READER = "allow s3:ListBucket on the bucket and s3:GetObject on its objects (and kms:Decrypt)"
_AGAIN = "run fetch again later; what was downloaded is kept"
_SIGN_IN = (
    "sign in (aws sso login), set AWS_PROFILE or profile, or run with a role of AWS; credentials "
    "of an hour may have ended"
)
_TRUST = (
    "let the role's trust policy allow this identity to assume it, with the external id that "
    "external_id_env names"
)
_UNSIGNED = frozenset({
    "ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId", "SignatureDoesNotMatch",
    "InvalidClientTokenId", "InvalidToken", "AuthFailure", "UnrecognizedClientException",
    "RequestExpired", "RequestTimeTooSkewed", "MissingAuthenticationToken",
})  # fmt: skip
# Code of the service -> what it means, and what to do.
_KNOWN = {
    "NoSuchBucket": ("there is no such bucket", "name the one that the export is delivered to"),
    "AccessDenied": ("access is refused", _READER),
    "AllAccessDisabled": ("access is refused", _READER),
    "InvalidObjectState": ("it is archived", "restore it, or export the period again"),
}
# Of S3, where the bucket is in another region.
_ELSEWHERE = frozenset({
    "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
})  # fmt: skip
_REGION = r"[a-z]{2}(-[a-z]+)+-\d{1,2}"
_CHANGED = ("PreconditionFailed", "NoSuchKey", "InvalidRange", "412", "404", "416")
_BUSY = ("SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded",
         "TooManyRequestsException", "RequestTimeout", "InternalError", "ServiceUnavailable",
         "OperationAborted")  # fmt: skip
_NO_CREDENTIALS = (
    CredentialRetrievalError, NoCredentialsError, PartialCredentialsError, ProfileNotFound,
    SSOError, TokenRetrievalError,
)  # fmt: skip


def mapped(error: BotoCoreError | ClientError, where: str, how: str) -> ProviderError:
    """The error as one of ours; `where` names the object, `how` the way of signing in."""
    if isinstance(error, ClientError):
        return _of_answer(error, where, how)
    if isinstance(error, _NO_CREDENTIALS):
        return _not_signed_in(where, how, type(error).__name__, _SIGN_IN)
    if isinstance(error, EndpointConnectionError):
        remedy = "check the network, the proxy and the region, and run fetch again"
        return _unavailable(Problem(where, "it cannot be reached", remedy))
    if isinstance(error, HTTPClientError | IncompleteReadError):
        return _unavailable(Problem(where, "the connection was cut", _AGAIN))
    if isinstance(error, ParamValidationError):
        problem = Problem(where, "the SDK refuses the name", "correct billing or role_arn")
        return ProviderError("aws: the export cannot be read", [problem])
    problem = Problem(where, type(error).__name__, "see the AWS configuration of this host")
    return ProviderError("aws: the export cannot be read", [problem])


def _of_answer(error: ClientError, where: str, how: str) -> ProviderError:
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    code = _code(error)
    told = _told(status, code)
    if code in _ELSEWHERE or status == 301:
        return _elsewhere(error, where, told)
    if code in _UNSIGNED or status == 401:
        return _not_signed_in(where, how, told, _SIGN_IN)
    if error.operation_name == "AssumeRole":
        if status >= 500 or code in _BUSY:
            return _unavailable(Problem(where, f"it cannot be assumed now ({told})", _AGAIN))
        return _not_signed_in(where, how, told, _TRUST)
    what, remedy = _KNOWN.get(code, ("", ""))
    if status == 403:
        what, remedy = what or "access is refused", remedy or _READER
    if error.operation_name in ("HeadBucket", "ListObjectsV2") and status == 404:
        what, remedy = _KNOWN["NoSuchBucket"]
    elif code in _CHANGED:
        problem = Problem(where, f"it changed after it was listed ({told})", "run fetch again")
        return _unavailable(problem)
    if code in _BUSY or status == 429 or status >= 500:
        problem = Problem(where, f"the service does not answer now ({told})", _AGAIN)
        return _unavailable(problem)
    shown = f"{what} ({told})" if what else told
    return ProviderError("aws: the export cannot be read", [Problem(where, shown, remedy)])


def _told(status: int, code: str) -> str:
    """The status and the code; an answer without a body has its status as code.

    >>> _told(404, "404"), _told(301, "PermanentRedirect"), _told(0, "SlowDown")
    ('HTTP 404', 'HTTP 301 PermanentRedirect', 'SlowDown')
    """
    if not status:
        return code
    return f"HTTP {status}" + ("" if code in ("", str(status)) else f" {code}")


def _elsewhere(error: ClientError, where: str, told: str) -> ProviderError:
    """The bucket is in another region than the one that was asked."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    named = error.response.get("Error", {}).get("Region") or headers.get("x-amz-bucket-region")
    region = str(named) if re.fullmatch(_REGION, str(named or "")) else None
    what = f"it is in another region than was asked ({told})"
    remedy = "set AWS_DEFAULT_REGION, or region of the profile, to the bucket's region"
    if region is not None:
        what = f"it is in the region {region}, which was not asked ({told})"
        remedy = f"set AWS_DEFAULT_REGION, or region of the profile, to {region}"
    remedy += ", and let no AWS_ENDPOINT_URL name another one"
    return ProviderError("aws: the export cannot be read", [Problem(where, what, remedy)])


def _code(error: ClientError) -> str:
    """The service's error code, as a word; nothing else of its answer is repeated."""
    code = str(error.response.get("Error", {}).get("Code") or "")
    return code if re.fullmatch(r"[A-Za-z0-9.]{1,80}", code) else ""


def _not_signed_in(where: str, how: str, told: str, remedy: str) -> MissingCredentials:
    problem = Problem(where, f"{how} gave no valid credentials ({told})", remedy)
    return MissingCredentials("aws: not signed in", [problem])


def _unavailable(problem: Problem) -> ProviderUnavailable:
    return ProviderUnavailable("aws: the export cannot be read now", [problem])
