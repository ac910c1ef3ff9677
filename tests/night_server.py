"""Runs nights on request, each in a process of its own that is ready at once.

Every line of stdin is a JSON list of the program's words; the process id of the run is answered
before it starts, and how it ended when it has (a signal as a negative number). What is slow about
starting, the imports, is done once; nothing is opened before the fork.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

NEEDED = (
    "duckdb", "highspy", "ibis.backends.duckdb", "pulp", "pyarrow.parquet", "planner.nightly",
    "planner.cli.commands", "planner.cli.sources", "providers.aws.billing", "providers.aws.fetch",
    "providers.azure.billing", "providers.files.loading", "providers.focus.billing",
    "providers.gcp.billing",
    "reports.terminal", "rich.table",
)  # fmt: skip


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    from planner.cli import main as program

    for name in NEEDED:
        importlib.import_module(name)
    _say("ready")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os._exit(program(json.loads(line)))
        _say(child)
        _say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
