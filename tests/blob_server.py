"""A small server in the shape of Blob Storage's REST interface, with faults on request.

It answers List Blobs in pages, and Get Blob with ranges and If-Match, as the public reference of
Blob Storage describes them; over TLS it also gives tokens as the identity service does.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ssl import SSLContext

ACCOUNT, CONTAINER = "acmebills", "exports"
_CODES = {401: "InvalidAuthenticationInfo", 403: "AuthorizationPermissionMismatch",
          409: "BlobArchived"}  # fmt: skip
MODIFIED = datetime(2026, 11, 3, 4, 5, 6, tzinfo=UTC)


@dataclass
class BlobServer:
    """Blobs by name, and what is to go wrong with the next requests.

    `faults` are taken in order, each by the first request that it fits: ("list", 503) or
    ("blob", 503) answers with the status, ("blob", "cut") closes after half of the bytes.
    """

    blobs: dict[str, bytes] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    page: int = 5000
    faults: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    authorization: str | None = None
    token_error: int | None = None
    tls: SSLContext | None = None

    def __enter__(self) -> BlobServer:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def root(self) -> str:
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def address(self) -> str:
        """The container as a source's `billing` names it."""
        return f"{self.root}/{ACCOUNT}/{CONTAINER}"

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey=c2VjcmV0LWtleQ==;"
            f"BlobEndpoint={self.root}/{ACCOUNT};"
        )

    def ranges(self, name: str) -> list[str]:
        """The ranges that were asked of a blob, in order."""
        return [extra for asked, extra in self.asked if asked == name]

    def fault(self, kind: str) -> Any:
        for position, (fits, _what) in enumerate(self.faults):
            if fits == kind:
                return self.faults.pop(position)[1]
        return None


def etag(content: bytes) -> str:
    return "0x8D" + sha256(content).hexdigest()[:12].upper()


def _handler(server: BlobServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            server.asked.append(("token", body))
            if server.token_error is not None:
                text = f"AADSTS{server.token_error}: {unquote(body)}"
                self.answer(401, {"error": "invalid_client", "error_description": text})
                return
            self.answer(200, {"token_type": "Bearer", "expires_in": 3600, "access_token": "let-in"})

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if ".well-known/openid-configuration" in parts.path:
                base = f"{server.root}/{parts.path.split('/')[1]}/oauth2/v2.0"
                told = {"authorization_endpoint": f"{base}/authorize", "issuer": base}
                self.answer(200, {**told, "token_endpoint": f"{base}/token"})
                return
            server.authorization = self.headers.get("Authorization")
            _, _account, container, *name = unquote(parts.path).split("/")
            if container != CONTAINER:
                self.refuse(404, "ContainerNotFound")
            elif not name:
                self.listing(parse_qs(parts.query))
            else:
                self.blob("/".join(name))

        def listing(self, query: dict[str, list[str]]) -> None:
            marker = (query.get("marker") or [""])[0]
            server.asked.append(("list", marker))
            status = server.fault("list")
            if status is not None:
                self.refuse(status, "ServerBusy" if status == 503 else "AuthorizationFailure")
                return
            prefix = (query.get("prefix") or [""])[0]
            names = sorted(n for n in [*server.blobs, *server.folders] if n.startswith(prefix))
            start = int(marker or 0)
            shown = names[start : start + server.page]
            rest = start + server.page
            following = str(rest) if rest < len(names) else ""
            self.send(
                200, "".join(_page(server, shown, prefix, following)).encode(), "application/xml"
            )

        def blob(self, name: str) -> None:
            asked = self.headers.get("x-ms-range") or self.headers.get("Range") or ""
            server.asked.append((name, asked))
            content = server.blobs.get(name)
            fault = server.fault("blob")
            if isinstance(fault, int):
                self.refuse(fault, _CODES.get(fault, "ServerBusy"))
            elif content is None:
                self.refuse(404, "BlobNotFound")
            elif self.headers.get("If-Match") not in (None, f'"{etag(content)}"'):
                self.refuse(412, "ConditionNotMet")
            else:
                first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups())
                self.send_response(206)
                last = min(last, len(content) - 1)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
                self.send_header("ETag", f'"{etag(content)}"')
                self.send_header("Last-Modified", format_datetime(MODIFIED, usegmt=True))
                self.send_header("x-ms-blob-type", "BlockBlob")
                if name.endswith(".gz"):
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(last - first + 1))
                self.end_headers()
                whole = content[first : last + 1]
                if fault == "cut":
                    self.wfile.write(whole[: len(whole) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(whole)

        def refuse(self, status: int, code: str) -> None:
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{escape(self.path)}"
            body = f"{text} {self.headers.get('Authorization')}</Message></Error>".encode()
            self.send(status, body, "application/xml", {"x-ms-error-code": code})

        def answer(self, status: int, document: dict[str, Any]) -> None:
            self.send(status, json.dumps(document).encode(), "application/json")

        def send(
            self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for header, value in (more or {}).items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _page(server: BlobServer, names: list[str], prefix: str, following: str) -> Iterator[str]:
    yield "<?xml version='1.0' encoding='utf-8'?><EnumerationResults>"
    yield f"<Prefix>{escape(prefix)}</Prefix><Blobs>"
    for name in names:
        content = server.blobs.get(name, b"")
        folder = "<hdi_isfolder>true</hdi_isfolder>" if name in server.folders else ""
        yield (
            f"<Blob><Name>{escape(name)}</Name><Properties>"
            f"<Last-Modified>{format_datetime(MODIFIED, usegmt=True)}</Last-Modified>"
            f"<Etag>{etag(content)}</Etag><Content-Length>{len(content)}</Content-Length>"
            f"<BlobType>BlockBlob</BlobType></Properties><Metadata>{folder}</Metadata></Blob>"
        )
    yield f"</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
