"""How a source signs in to Google Cloud: key files made here, a sign-in service that refuses."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core.exceptions import Forbidden, ServiceUnavailable, TooManyRequests
from google.auth import impersonated_credentials
from google.auth.exceptions import RefreshError, TransportError

from data.errors import MissingCredentials, ProviderError, ProviderUnavailable
from providers.gcp.failures import mapped, told
from providers.gcp.places import BucketPlace
from providers.gcp.session import Session
from providers.gcp.storage import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READER = "reader@ml.iam.gserviceaccount.com"
SECRET = "what-the-service-says"


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """A token service that refuses every key, with words that must not be repeated."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            text = json.dumps({"error": "invalid_grant", "error_description": SECRET}).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def key_file(refusing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GOOGLE_APPLICATION_CREDENTIALS of a service account that only this test knows."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    document = {
        "type": "service_account", "project_id": "ml", "private_key_id": "1",
        "private_key": private.decode(), "client_email": READER, "client_id": "1",
        "token_uri": refusing,
    }  # fmt: skip
    (tmp_path / "key.json").write_text(json.dumps(document))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


def session(**options: Any) -> Session:
    return Session("sources.bills", options, {})


@pytest.mark.parametrize("options", [{}, {"impersonate_service_account": "other@ml"}])
def test_refused_credentials_are_told_by_their_code_alone(key_file, options):
    bucket = Bucket(session(**options).storage(), BucketPlace("bills", ""))
    with pytest.raises(MissingCredentials) as caught:
        list(bucket.objects("a/"))
    (problem,) = caught.value.problems
    assert problem.where == "gs://bills/a/"
    assert problem.what == "the credentials are refused (invalid_grant)"
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_service_account_is_impersonated_where_the_source_says_so(key_file):
    found = session(impersonate_service_account=f"other-{READER}")._credentials(None)
    assert isinstance(found, impersonated_credentials.Credentials)
    assert found.service_account_email == f"other-{READER}"
    assert session()._credentials(None).service_account_email == READER


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TooManyRequests("slow down"), ProviderUnavailable),
        (ServiceUnavailable("try later"), ProviderUnavailable),
        (Forbidden("no", errors=[{"reason": "quotaExceeded"}]), ProviderUnavailable),
        (Forbidden("no", errors=[{"reason": "accessDenied"}]), ProviderError),
        (TransportError("cut"), ProviderUnavailable),
        (RefreshError("gone"), MissingCredentials),
    ],
)  # fmt: skip
def test_errors_are_told_apart_by_whether_trying_again_may_help(error, kind):
    assert type(mapped(error, "x", "grant it")) is kind


def test_an_api_that_is_off_and_a_query_that_costs_too_much_name_what_to_do():
    off = Forbidden("m", errors=[{"reason": "accessNotConfigured", "message": "BigQuery is off"}])
    assert "enable the API" in mapped(off, "x", "").problems[0].remedy
    much = Forbidden("m", errors=[{"reason": "bytesBilledLimitExceeded", "message": "10 MB"}])
    assert "max_bytes_billed" in mapped(much, "x", "").problems[0].remedy


def test_errors_of_other_kinds_are_left_alone():
    with pytest.raises(ZeroDivisionError), told("x", ""):
        _ = 1 / 0
