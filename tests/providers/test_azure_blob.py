"""A container of Blob Storage over its REST shape: pages, versions, faults, and no secrets told."""

from __future__ import annotations

import logging
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from data.errors import ConfigError, MissingCredentials, ProviderError, ProviderUnavailable
from providers.azure.blob import BlobContainer
from providers.azure.places import BlobPlace, account_of
from providers.azure.session import CHUNK, CONNECTION_STRING
from providers.fetch.contract import StoredObject
from tests.blob_server import ACCOUNT, MODIFIED, BlobServer, etag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "c2VjcmV0LWtleQ=="
# Two chunks and a bit; no byte pattern that repeats at their edges.
BIG = bytes(range(251)) * (2 * CHUNK // 251 + 1)


@pytest.fixture
def server() -> Iterator[BlobServer]:
    with BlobServer() as running:
        yield running


def container(server: BlobServer) -> BlobContainer:
    environment = {CONNECTION_STRING: server.connection_string}
    return BlobContainer(BlobPlace.of(server.address), {}, environment)


def listed(server: BlobServer, name: str) -> StoredObject:
    (found,) = container(server).objects(name)
    return found


def test_every_page_is_listed_and_folders_are_no_blobs(server: BlobServer) -> None:
    server.blobs = {f"a/{month:02}.csv": b"x" * month for month in range(1, 6)} | {"b/1.csv": b""}
    server.folders, server.page = ["a/03"], 2
    found = list(container(server).objects("a/"))
    assert [(one.key, one.size) for one in found] == [
        ("a/01.csv", 1), ("a/02.csv", 2), ("a/03.csv", 3), ("a/04.csv", 4), ("a/05.csv", 5),
    ]  # fmt: skip
    assert {one.modified for one in found} == {MODIFIED}
    assert found[0].version == etag(b"x")
    assert [marker for kind, marker in server.asked if kind == "list"] == ["", "2", "4"]


def test_a_throttled_listing_and_a_cut_download_are_tried_again(
    server: BlobServer, tmp_path: Path
) -> None:
    server.blobs = {"a.csv.gz": b"not really gzip", "b.csv": b"0123456789"}
    server.faults = [("list", 503), ("blob", "cut")]
    found = {one.key: one for one in container(server).objects("")}
    assert sorted(found) == ["a.csv.gz", "b.csv"]
    target = tmp_path / "landing" / "b.csv"
    container(server).download(found["b.csv"], target)
    assert target.read_bytes() == b"0123456789"
    assert server.ranges("b.csv") == ["bytes=0-9", "bytes=0-9"]
    # What is marked as gzip comes as it is stored: its size is the listed one.
    container(server).download(found["a.csv.gz"], tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == b"not really gzip"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "a.csv.gz", "b.csv",
    ]  # fmt: skip
    assert not server.faults


def test_a_download_goes_on_from_its_part_of_the_same_version_alone(
    server: BlobServer, tmp_path: Path
) -> None:
    server.blobs = {"big.csv": BIG}
    item = listed(server, "big.csv")
    target, part = tmp_path / "big.csv", tmp_path / "big.csv.part"
    version = tmp_path / "big.csv.part.version"
    part.write_bytes(BIG[: CHUNK + 5])
    version.write_text(item.version)
    container(server).download(item, target)
    assert target.read_bytes() == BIG
    # 2 x CHUNK and a bit: from CHUNK + 5 one more chunk, then the rest.
    assert server.ranges("big.csv") == [
        f"bytes={CHUNK + 5}-{2 * CHUNK + 4}", f"bytes={2 * CHUNK + 5}-{len(BIG) - 1}",
    ]  # fmt: skip
    for stale in ("0x8DOTHER", None):
        part.write_bytes(b"of another version")
        version.unlink(missing_ok=True)
        if stale is not None:
            version.write_text(stale)
        container(server).download(item, target)
        assert target.read_bytes() == BIG
        assert not part.exists()


def test_a_download_that_is_cut_again_and_again_is_gone_on_with_by_the_next(
    server: BlobServer, tmp_path: Path
) -> None:
    server.blobs = {"big.csv": BIG}
    item = listed(server, "big.csv")
    server.faults = [("blob", "none"), *[("blob", "cut")] * 20]
    with pytest.raises(ProviderUnavailable, match="the connection was cut"):
        container(server).download(item, tmp_path / "big.csv")
    assert (tmp_path / "big.csv.part").stat().st_size == CHUNK
    server.faults, server.asked = [], []
    container(server).download(item, tmp_path / "big.csv")
    assert server.ranges("big.csv")[0].startswith(f"bytes={CHUNK}-")
    assert (tmp_path / "big.csv").read_bytes() == BIG


def test_a_blob_that_changed_after_the_listing_is_not_mixed_up(
    server: BlobServer, tmp_path: Path
) -> None:
    server.blobs = {"run/part.csv": b"old rows"}
    item = listed(server, "run/")
    server.blobs["run/part.csv"] = b"new rows"
    with pytest.raises(ProviderUnavailable, match="changed after it was listed") as refused:
        container(server).download(item, tmp_path / "part.csv")
    assert f"{server.address}/run/part.csv" in str(refused.value)
    with pytest.raises(ProviderUnavailable, match="changed after it was listed"):
        container(server).read(item)
    assert not (tmp_path / "part.csv").exists()
    assert container(server).read(listed(server, "run/")) == b"new rows"
    empty = StoredObject("nothing", 0, "0x8D", MODIFIED)
    assert container(server).read(empty) == b""


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (403, ProviderError, "Storage Blob Data Reader"),
        (409, ProviderError, "archive tier"),
        (401, MissingCredentials, "az login"),
    ],
)
def test_refusals_say_what_to_do_and_quote_nothing(
    server: BlobServer, caplog: pytest.LogCaptureFixture, fault: int,
    kind: type[ProviderError], told: str,
) -> None:  # fmt: skip
    server.blobs = {"a.csv": b"a"}
    item = listed(server, "a.csv")
    server.faults = [("blob", fault)]
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ProviderError, match=told) as refused:
        container(server).read(item)
    assert type(refused.value) is kind
    assert f"HTTP {fault}" in str(refused.value) or kind is MissingCredentials
    assert refused.value.__suppress_context__
    shown = str(refused.value) + caplog.text
    assert SECRET not in shown
    assert "SharedKey" not in str(refused.value)


def test_a_service_that_stays_busy_is_unavailable_and_not_refused(
    server: BlobServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = [("list", 503)] * 20
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)  # of the SDK, between its tries
    with pytest.raises(ProviderUnavailable, match=r"throttled \(HTTP 503 ServerBusy\)"):
        list(container(server).objects("a/"))
    tries = [kind for kind, _ in server.asked]
    assert tries == ["list"] * 5  # the first, and four more
    assert 20 < sum(waited) < 60


def test_a_signature_of_a_connection_string_is_in_no_message_and_no_log(
    server: BlobServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    signed = f"BlobEndpoint={server.root}/{ACCOUNT};SharedAccessSignature=sv=2025&sig=pl%2Fanted"
    place = BlobPlace.of(server.address.replace("/exports", "/elsewhere/daily"))
    missing = BlobContainer(place, {}, {CONNECTION_STRING: signed})
    with pytest.raises(ProviderError, match="there is no such container") as refused:
        list(missing.objects(place.folder))
    assert "elsewhere" in str(refused.value)
    assert "pl%2Fanted" not in str(refused.value) + repr(refused.value) + caplog.text
    assert "pl/anted" not in str(refused.value) + caplog.text
    with pytest.raises(MissingCredentials, match=CONNECTION_STRING) as refused:
        BlobContainer(place, {}, {CONNECTION_STRING: f"{signed};broken"})
    assert "anted" not in str(refused.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("refused", [False, True])
def test_an_application_signs_in_with_the_secret_of_its_variable(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    refused: bool,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate / "cert.pem"))
    options = {"tenant_id": "a1b2", "client_id": "reader", "client_secret_env": "BILLS_SECRET"}
    with BlobServer(tls=context, blobs={"daily/a.csv": b"rows"}) as server:
        host = server.root.removeprefix("https://")
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", host)
        environment = {"BILLS_SECRET": "plantedsecret", "AZURE_AUTHORITY_HOST": host}
        # A connection string of another account has no say.
        environment[CONNECTION_STRING] = f"AccountName=other;AccountKey={SECRET}"
        place = BlobPlace.of(f"{server.address}/daily")
        if refused:
            server.token_error = 7000215
            with pytest.raises(MissingCredentials, match="AADSTS7000215") as told:
                list(BlobContainer(place, options, environment).objects(place.folder))
            assert "plantedsecret" not in str(told.value) + caplog.text
            return
        (item,) = BlobContainer(place, options, environment).objects(place.folder)
        assert item.key == "daily/a.csv"
        assert server.authorization == "Bearer let-in"
        assert any("client_secret=plantedsecret" in body for kind, body in server.asked
                   if kind == "token")  # fmt: skip
    assert "plantedsecret" not in caplog.text


def test_a_secret_that_is_not_set_names_its_variable() -> None:
    place = BlobPlace.of("https://acme.blob.core.windows.net/bills/daily")
    options = {"tenant_id": "t", "client_id": "c", "client_secret_env": "BILLS_SECRET"}
    with pytest.raises(MissingCredentials, match="BILLS_SECRET: the environment variable is not"):
        BlobContainer(place, options, {})
    with pytest.raises(ConfigError, match="client_id: missing beside client_secret_env"):
        BlobContainer(place, {"tenant_id": "t", "client_secret_env": "S"}, {"S": "x"})


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://acme.blob.core.windows.net/bills/daily/actual/",
         ("https://acme.blob.core.windows.net", "acme", "bills", "daily/actual/")),
        ("https://acme.dfs.core.windows.net/bills",
         ("https://acme.blob.core.windows.net", "acme", "bills", "")),
        ("abfss://bills@acme.dfs.core.chinacloudapi.cn/FinOps%20exports",
         ("https://acme.blob.core.chinacloudapi.cn", "acme", "bills", "FinOps exports/")),
        ("https://acme.z01.blob.storage.azure.net/bills/a",
         ("https://acme.z01.blob.storage.azure.net", "acme", "bills", "a/")),
    ],
)  # fmt: skip
def test_an_address_names_account_container_and_folder(
    address: str, place: tuple[str, str, str, str]
) -> None:
    assert BlobPlace.of(address) == BlobPlace(*place)


@pytest.mark.parametrize(
    "address",
    [
        "https://acme.blob.core.windows.net/bills?sv=2025&sig=plantedsecret",
        "abfss://bills:plantedsecret@acme.dfs.core.windows.net/a",
        "https://acme.blob.core.windows.net",
        "https://acme.blob.core.windows.net/Bills",
        "https://files.example.org/bills/a",
        "http://acme.blob.core.windows.net/bills",
        "https://acme.blob.core.windows.net:port/bills",
        "s3://bucket/prefix",
        "",
    ],
)
def test_another_address_is_refused_and_a_secret_in_it_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError, match="billing") as refused:
        BlobPlace.of(address)
    assert "plantedsecret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("UseDevelopmentStorage=true", "devstoreaccount1"),
        ("BlobEndpoint=https://acme.blob.core.windows.net/;SharedAccessSignature=sig=x", "acme"),
        ("BlobEndpoint=http://127.0.0.1:10000/acme;SharedAccessSignature=sig=x", "acme"),
        ("nonsense", None),
    ],
)
def test_a_connection_string_is_of_one_account(text: str, account: str | None) -> None:
    assert account_of(text) == account
