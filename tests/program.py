"""Runs the program as a person does, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FLEET = ROOT / "data" / "sample" / "fleet"
DAY = "2026-10-31"
START = "import sys; from planner.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error document, after a check of its shape."""
        body = self.json
        assert list(body) == ["error"]
        assert set(body["error"]) == {"kind", "message", "problems"}
        assert all(set(one) == {"where", "what", "remedy"} for one in body["error"]["problems"])
        return body["error"]


def call(*words: object) -> Finished:
    """The program in this process."""
    from planner.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    return Finished(code, out.getvalue(), err.getvalue())


def run(*words: object, cwd: Path = ROOT, **environment: str) -> Finished:
    """The program in a process of its own; `environment` is added to that of the tests."""
    done = subprocess.run(
        [sys.executable, "-c", START, *(str(word) for word in words)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder by its path in it, without the times of its steps."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timings.json"
    }
