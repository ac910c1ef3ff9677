"""What may be seen of billing accounts, against a small server in the Cloud Billing API's shape."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from data.errors import MissingCredentials
from providers.gcp.accounts import PERMISSIONS, Account, look, warnings
from providers.gcp.session import BILLING_HOST, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.cloud.billing_v1 import CloudBillingClient

OWN = "01A2B3-C4D5E6-F70819"
_ON = "https://console.cloud.google.com/apis/api/cloudbilling.googleapis.com"


@dataclass
class BillingApi:
    """Billing accounts in pages of one, what is granted on each, and what to fail with.

    Shapes: billingAccounts.list and billingAccounts.testIamPermissions of the v1 REST reference.
    """

    accounts: list[dict[str, Any]] = field(default_factory=list)
    granted: dict[str, list[str]] = field(default_factory=dict)
    failing: dict[str, Any] | None = None

    def answer(self, path: str, query: dict[str, list[str]], body: bytes) -> dict[str, Any]:
        if path == "/v1/billingAccounts":
            start = int(query.get("pageToken", ["0"])[0])
            more = start + 1 < len(self.accounts)
            page = {"billingAccounts": self.accounts[start : start + 1]}
            return page | ({"nextPageToken": str(start + 1)} if more else {})
        name, _, verb = path.removeprefix("/v1/").partition(":")
        assert verb == "testIamPermissions"
        asked = json.loads(body)["permissions"]
        return {"permissions": [one for one in asked if one in self.granted.get(name, [])]}


def _disabled() -> dict[str, Any]:
    message = f"Cloud Billing API has not been used in project 42 before. Enable it: {_ON}"
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
    }
    return {"code": 403, "message": message, "status": "PERMISSION_DENIED", "details": [info]}


@pytest.fixture
def api() -> Iterator[tuple[BillingApi, CloudBillingClient]]:
    fake = BillingApi()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            status, document = 200, {}
            if fake.failing:
                status, document = fake.failing["code"], {"error": fake.failing}
            else:
                document = fake.answer(place.path, parse_qs(place.query), body)
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    root = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake, Session("sources.bills", {}, {BILLING_HOST: root}).billing()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def account(number: str, is_open: bool = True) -> dict[str, Any]:
    return {"name": f"billingAccounts/{number}", "displayName": number[:6], "open": is_open}


def test_an_account_with_all_rights_has_no_problem_and_every_page_is_read(api):
    fake, client = api
    fake.accounts = [account(OWN), account("00FFFF-000000-000000", False)]
    fake.granted = {f"billingAccounts/{OWN}": list(PERMISSIONS)}
    sight = look(client, OWN)
    assert sight.problems == ()
    assert sight.accounts == (
        Account("00FFFF-000000-000000", "00FFFF", False),
        Account(OWN, "01A2B3", True),
    )
    assert warnings(client, f"billingAccounts/{OWN}") == ()


def test_missing_rights_name_the_permissions_the_role_and_what_can_be_seen(api):
    fake, client = api
    fake.accounts = [account("00FFFF-000000-000000")]
    fake.granted = {f"billingAccounts/{OWN}": ["billing.accounts.get"]}
    (problem,) = look(client, OWN).problems
    assert problem.where == f"billingAccounts/{OWN}"
    assert problem.what == (
        "lacking: billing.accounts.getSpendingInformation, billing.accounts.getUsageExportSpec; "
        "accounts that can be seen: 00FFFF-000000-000000"
    )
    assert problem.remedy == f"grant whoever asks roles/billing.viewer on billingAccounts/{OWN}"


def test_a_closed_account_is_told(api):
    fake, client = api
    fake.accounts = [account(OWN, is_open=False)]
    fake.granted = {f"billingAccounts/{OWN}": list(PERMISSIONS)}
    assert [one.what for one in look(client, OWN).problems] == ["the account is closed"]


def test_an_api_that_is_off_is_one_warning(api):
    fake, client = api
    fake.failing = _disabled()
    (told,) = warnings(client, OWN)
    assert "the Cloud Billing API is off in the project that asks" in told
    assert "gcloud services enable cloudbilling.googleapis.com" in told


def test_refused_access_is_one_warning_and_refused_credentials_are_an_error(api):
    fake, client = api
    fake.failing = {"code": 403, "message": "The caller does not have permission"}
    (told,) = warnings(client, OWN)
    assert "access is refused (The caller does not have permission)" in told
    assert "roles/billing.viewer" in told
    fake.failing = {"code": 401, "message": "Request had invalid authentication credentials."}
    with pytest.raises(MissingCredentials, match="not signed in"):
        warnings(client, OWN)
