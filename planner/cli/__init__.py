"""The one door: `loadfactor COMMAND`. Parses, calls one function, prints, sets the exit code.

Nothing heavy is imported before a command is known, so `loadfactor --help` answers at once.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from data.errors import LoadfactorError, Problem
from planner.cli.parser import build_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from planner.answers import Answer

_HALVES = re.compile("[\ud800-\udfff]")
log = logging.getLogger("loadfactor")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command line: see contract of exit codes in README.md."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json, verbose = "--json" in words, "--verbose" in words
    try:
        options = build_parser().parse_args(words)
        _set_log(options)
        answer = _run(options)
        _print(answer.json_text() if options.json else answer.text)
    except LoadfactorError as error:
        if verbose:
            log.exception("traceback of the error")
        return _fail(error, as_json)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return _fail(
            LoadfactorError("interrupted; the store and the output are as before"), as_json
        )
    except Exception as error:
        if verbose:
            log.exception("traceback of the error")
        where = type(error).__name__
        unexpected = Problem(where, str(error), "run again with --verbose and report it")
        return _fail(LoadfactorError("unexpected error", [unexpected]), as_json)
    return answer.exit_code


def _run(options: argparse.Namespace) -> Answer:
    from planner.cli import commands

    with ExitStack() as closing:
        options.closing = closing
        return commands.COMMANDS[options.command](options)


def _print(text: str) -> None:
    # Half a character, as in a path that is no UTF-8, stands as JSON writes it.
    text = _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
    if text:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def _fail(error: LoadfactorError, as_json: bool) -> int:
    if as_json:
        _print(json.dumps({"error": error.as_json()}, ensure_ascii=False, indent=1))
    else:
        sys.stderr.write(f"loadfactor: {error}\n")
    return error.exit_code


def _set_log(options: argparse.Namespace) -> None:
    level = logging.WARNING if options.quiet else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.DEBUG if options.verbose else level)
