"""How a source signs in to AWS: the SDK's own chain, a profile, and a role that is assumed.

Secrets come from the environment or the SDK's files alone. Rules: boto3 "Credentials" and IAM "How
to use an external ID", read 2026-11.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ClientError

from data.errors import ConfigError, MissingCredentials, Problem, ProviderError
from providers.aws.failures import mapped

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROLE = re.compile(r"arn:(aws[a-z-]*):iam::\d{12}:role/.+")
_HOME_REGIONS = {"aws-us-gov": "us-gov-west-1", "aws-cn": "cn-north-1"}
_DEFAULT_REGION = "us-east-1"
_ROLE_SESSION = "loadfactor"
# At their debug level the SDK's loggers quote signed headers and session tokens.
_QUOTING = ("boto3", "botocore", "urllib3")
_SETTINGS: dict[str, Any] = {
    "retries": {"mode": "standard", "total_max_attempts": 5},
    "connect_timeout": 20,
    "read_timeout": 60,
    "max_pool_connections": 8,
    "user_agent_extra": "loadfactor",
}


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session of the SDK, and how it signs in, in words without any secret."""

    session: Any
    how: str
    region: str

    def client(self, service: str, region: str, **settings: Any) -> Any:
        """A client of the service in the region, with patience for throttling."""
        config = Config(**_SETTINGS, **settings)
        try:
            return self.session.client(service, region_name=region, config=config)
        except ValueError as error:  # how the SDK refuses an address or a number of the environment
            what = f"the SDK refuses a setting of this host ({type(error).__name__})"
            remedy = "look at the variables AWS_... (AWS_ENDPOINT_URL) and the file ~/.aws/config"
            problem = Problem(f"{service} in {region}", what, remedy)
            raise ProviderError("aws: no client can be made", [problem]) from None


class _Role(CredentialProvider):  # type: ignore[misc]  # botocore ships no types
    """Credentials of an assumed role, fetched when they are needed and again before they end."""

    METHOD = CANONICAL_NAME = "loadfactor-role"

    def __init__(self, fetcher: Any) -> None:
        super().__init__()
        self._fetcher = fetcher

    def load(self) -> Any:
        return DeferredRefreshableCredentials(
            method=self.METHOD, refresh_using=self._fetcher.fetch_credentials
        )


def sign_in(options: Mapping[str, Any], environment: Mapping[str, str]) -> SignedIn:
    """The session of a source.

    Raises MissingCredentials where the profile or the variable of the external id is not there, or
    where no credentials are found to assume the role with.
    """
    for name in _QUOTING:
        logging.getLogger(name).setLevel(logging.WARNING)
    profile, role = options.get("profile"), options.get("role_arn")
    how = f"the profile {profile}" if profile else "the SDK's own chain of credentials"
    try:
        own = boto3.Session(profile_name=profile)
        if role is None:
            return SignedIn(own, how, own.region_name or _DEFAULT_REGION)
        return _assumed(own, str(role), _external_id(options, environment), how)
    except (BotoCoreError, ClientError) as error:
        raise mapped(error, str(role or profile or "aws"), how) from None


def _external_id(options: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    name = options.get("external_id_env")
    if not name:
        return None
    value = environment.get(str(name), "").strip()
    if not value:
        what = "the environment variable is not set, or empty"
        remedy = f"set it to the external id that {options['role_arn']} asks for"
        raise MissingCredentials("aws: no external id", [Problem(str(name), what, remedy)])
    return value


def _assumed(own: Any, role: str, external_id: str | None, how: str) -> SignedIn:
    found = _ROLE.fullmatch(role)
    if found is None:
        problem = Problem("role_arn", f"{role} is no role", "write arn:aws:iam::ACCOUNT:role/NAME")
        raise ConfigError("the role cannot be assumed", [problem])
    region = own.region_name or _HOME_REGIONS.get(found.group(1), _DEFAULT_REGION)
    source = own.get_credentials()
    if source is None:
        remedy = "sign in (aws sso login), set AWS_PROFILE or profile, or run with a role of AWS"
        problem = Problem(role, f"{how} found no credentials to assume it with", remedy)
        raise MissingCredentials("aws: not signed in", [problem])

    def client(service: str, **given: Any) -> Any:
        # The SDK's fetcher asks for a client of STS by its own keys.
        keys = {name: given[name] for name in given if name.startswith("aws_")}
        return own.client(service, region_name=region, config=Config(**_SETTINGS), **keys)

    extra = {"RoleSessionName": _ROLE_SESSION}
    if external_id is not None:
        extra["ExternalId"] = external_id
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=client, source_credentials=source, role_arn=role, extra_args=extra
    )
    inner = botocore.session.Session(profile=None if own.profile_name == "default" else
                                     own.profile_name)  # fmt: skip
    inner.get_component("credential_provider").providers.insert(0, _Role(fetcher))
    return SignedIn(boto3.Session(botocore_session=inner), f"the role {role}", region)
