"""S3 and STS of moto behind a small proxy that counts requests and breaks some."""

from __future__ import annotations

import base64
import http.client
import logging
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

import boto3
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY, SECRET = "AKIAPLANTEDKEY000000", "planted/secret+key0123456789abcdefghijkl"


@dataclass(frozen=True)
class Asked:
    """One request that reached the proxy."""

    method: str
    path: str
    headers: dict[str, str]
    body: str = ""

    @property
    def is_listing(self) -> bool:
        return "list-type=2" in self.path

    def is_object(self, key: str) -> bool:
        path = unquote(self.path.partition("?")[0])
        return self.method == "GET" and path.endswith(f"/{key}")


@dataclass
class Server:
    """The endpoint; `faults` are taken in order, each by the first request that it fits.

    A fault is of a listing ("list"), of anything ("all") or of the object of a key. "503 SlowDown"
    answers with that error, which quotes what was signed as S3's do; "cut" sends half of the bytes,
    then the connection ends; "nothing" sends none of them; "hang" sends half of them, then nothing
    until `freed` is set; "flip" sends the object's checksum and another first byte. What stands in
    `before` is done before its key is read, once.
    """

    faults: list[tuple[str, str]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    freed: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    moto: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the SDK reads from here, and from nowhere else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    def client(self, service: str = "s3", region: str = "us-east-1") -> Any:
        """A client that is not seen by the proxy."""
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=f"http://127.0.0.1:{self.moto}",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def take(self, asked: Asked) -> str | None:
        """What is to go wrong with the request."""
        for fault in self.faults:
            what, how = fault
            fits = asked.is_listing if what == "list" else asked.is_object(what)
            if fits or what == "all":
                self.faults.remove(fault)
                return how
        return None


@contextmanager
def running() -> Iterator[Server]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    server = Server(moto=moto.get_host_and_port()[1])
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    proxy.daemon_threads = True
    server.port = proxy.server_address[1]
    thread = threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.freed.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join()
        moto.stop()


def _error(code: str, asked: Asked) -> bytes:
    """The error as S3 and STS write it: it quotes the request."""
    signed = escape(f"{asked.headers.get('Authorization')} {SECRET} {asked.body}")
    inner = f"<Code>{code}</Code><Message>{signed}</Message>"
    if asked.body:
        return f"<ErrorResponse><Error>{inner}</Error></ErrorResponse>".encode()
    return f"<Error>{inner}<StringToSign>{signed}</StringToSign></Error>".encode()


def _crc32(content: bytes) -> str:
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, self.path, dict(self.headers), body.decode())
            server.asked.append(asked)
            for key in [key for key in server.before if asked.is_object(key)]:
                server.before.pop(key)()
            fault = server.take(asked)
            if fault is not None and fault[0].isdigit():
                status, code = fault.split()
                self.answer(int(status), [("Content-Type", "application/xml")],
                            _error(code, asked))  # fmt: skip
                return
            onward = http.client.HTTPConnection("127.0.0.1", server.moto, timeout=30)
            onward.request(self.command, self.path, body, dict(self.headers))
            got = onward.getresponse()
            content = got.read()
            onward.close()
            kept = [
                (name, value)
                for name, value in got.getheaders()
                if name.lower() not in ("connection", "transfer-encoding", "content-length")
            ]
            if "Range" in self.headers:  # of an object in parts: that of the checksums of its parts
                kept.append(("x-amz-checksum-crc32", "AAAAAA=="))
            if fault == "flip":
                kept.append(("x-amz-checksum-crc32", _crc32(content)))
                content, fault = bytes([content[0] ^ 1]) + content[1:], None
            length = got.getheader("Content-Length")
            self.answer(got.status, kept, content, fault, length)

        def answer(
            self,
            status: int,
            headers: list[tuple[str, str]],
            content: bytes,
            fault: str | None = None,
            length: str | None = None,
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            if fault is None:
                self.wfile.write(content)
                return
            self.wfile.write(b"" if fault == "nothing" else content[: len(content) // 2])
            self.wfile.flush()
            if fault == "hang":
                server.freed.wait(60)
            self.close_connection = True
            self.connection.close()

        do_GET = do_HEAD = do_POST = forward

    return Handler
