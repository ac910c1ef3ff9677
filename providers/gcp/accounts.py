"""Which billing accounts whoever signs in may see, and whether the source's own is readable.

Permissions and roles: Cloud Billing "Access control", read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.api_core.exceptions import GoogleAPICallError

from data.errors import MissingCredentials, Problem, ProviderError
from providers.gcp.failures import is_disabled, told

if TYPE_CHECKING:
    from google.cloud.billing_v1 import CloudBillingClient

ROLE = "roles/billing.viewer"
# What the role gives that is of use here: the account, its spending, where it exports to.
PERMISSIONS = (
    "billing.accounts.get",
    "billing.accounts.getSpendingInformation",
    "billing.accounts.getUsageExportSpec",
)
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Account:
    """A billing account: its id (as 01A2B3-C4D5E6-F70819), its name, whether it is open."""

    id: str
    name: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Sight:
    """The accounts that can be seen, in order of id, and what keeps the source's from use."""

    accounts: tuple[Account, ...]
    problems: tuple[Problem, ...] = ()


def look(client: CloudBillingClient, account: str) -> Sight:
    """What can be seen of the billing account `account`, and of others.

    What is wrong with the account, or with the rights on it, is among the problems, an API that is
    off too. Raises MissingCredentials where nobody is signed in, ProviderError where the API does
    not answer.
    """
    name = f"billingAccounts/{account.removeprefix('billingAccounts/')}"
    remedy = f"grant whoever asks {ROLE} on {name}"
    with told(name, remedy):
        try:
            seen = tuple(sorted(_accounts(client), key=lambda one: one.id))
            answer = client.test_iam_permissions(
                resource=name, permissions=list(PERMISSIONS), timeout=_TIMEOUT_SECONDS
            )
        except GoogleAPICallError as error:
            if is_disabled(error):
                return Sight((), (_api_is_off(name),))
            raise
    lacking = [one for one in PERMISSIONS if one not in answer.permissions]
    problems = []
    if lacking:
        what = f"lacking: {', '.join(lacking)}{_others(seen, name)}"
        problems.append(Problem(name, what, remedy))
    if any(one.id == name.partition("/")[2] and not one.is_open for one in seen):
        problems.append(Problem(name, "the account is closed", "name the account that is paid now"))
    return Sight(seen, tuple(problems))


def warnings(client: CloudBillingClient, account: str) -> tuple[str, ...]:
    """What `look` finds wrong, in words: a bill can be read without the account's own rights.

    Raises MissingCredentials where nobody is signed in.
    """
    try:
        return tuple(f"billing account: {one}" for one in look(client, account).problems)
    except MissingCredentials:
        raise
    except ProviderError as error:
        shown = "; ".join(str(problem) for problem in error.problems) or error.message
        return (f"billing account: {shown}",)


def _accounts(client: CloudBillingClient) -> list[Account]:
    return [
        Account(one.name.partition("/")[2], one.display_name, one.open_)
        for one in client.list_billing_accounts(timeout=_TIMEOUT_SECONDS)
    ]


def _api_is_off(name: str) -> Problem:
    what = "the Cloud Billing API is off in the project that asks: its rights were not checked"
    return Problem(name, what, "run `gcloud services enable cloudbilling.googleapis.com`")


def _others(seen: tuple[Account, ...], name: str) -> str:
    own = name.partition("/")[2]
    others = [one.id for one in seen if one.id != own]
    if any(one.id == own for one in seen) or not others:
        return ""
    return f"; accounts that can be seen: {', '.join(others)}"
