"""The settings of a run, read from `loadfactor.toml`: all its problems at once, or none."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from data.errors import ConfigError, Problem
from planner.settings import Settings
from planner.settings.problems import check

DEFAULT_NAME = "loadfactor.toml"
DEFAULT_TOML = files("planner").joinpath("loadfactor.toml").read_text(encoding="utf-8")

_AT_LINE = re.compile(r"^(?P<what>.*) \(at line (?P<line>\d+), column \d+\)$", re.DOTALL)
_LONE_VALUE = re.compile(r"\s*[\w.\"'-]+\s*=[^\[{]*$")
_MOST_SYNTAX_FAULTS = 20


def load_config(path: Path | None = None) -> Settings:
    """The settings of a file; without a path those of `./loadfactor.toml`, else the defaults.

    Raises ConfigError with every problem of the file, or where a named file is not there.
    """
    named = path if path is not None else Path(DEFAULT_NAME)
    if path is None and not named.exists():
        return Settings(folder=Path.cwd())
    try:
        text = named.read_bytes().decode("utf-8-sig")
    except OSError as error:
        problem = Problem(str(named), error.strerror or "cannot be read", "see `loadfactor init`")
        raise ConfigError("the configuration cannot be read", [problem]) from None
    except UnicodeDecodeError as error:
        problem = Problem(f"{named} byte {error.start}", "is not UTF-8", "save the file as UTF-8")
        raise ConfigError("the configuration cannot be read", [problem]) from None
    return parse_config(text, named)


def parse_config(text: str, path: Path) -> Settings:
    """The settings that the text of a configuration file states; ConfigError with every fault."""
    document, problems = _parsed(text, path.name)
    valid, faults = check(document)
    if problems:
        # What a broken line would have said is not missing.
        faults = [fault for fault in faults if fault.what != "is missing"]
    problems += faults
    if valid is None or problems:
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        raise ConfigError(f"{path}: {count}", problems)
    return Settings(folder=path.absolute().parent, **dict(valid))


def _parsed(text: str, name: str) -> tuple[dict[str, Any], list[Problem]]:
    """The document and the faults of its syntax.

    A broken line that holds one value is left out, so that the rest can be judged too; past any
    other broken line nothing can be told.
    """
    problems: list[Problem] = []
    lines = text.replace("\r\n", "\n").split("\n")
    while True:
        try:
            return tomllib.loads("\n".join(lines)), problems
        except tomllib.TOMLDecodeError as error:
            found = _AT_LINE.match(str(error))
            number = int(found["line"]) if found else len(lines)
            what = found["what"] if found else str(error)
            problem = Problem(f"{name} line {number}", f"not TOML: {what}", "mend the line")
            lone = bool(found) and bool(_LONE_VALUE.match(lines[number - 1]))
            if not problems or lone:
                problems.append(problem)
            if not lone or len(problems) >= _MOST_SYNTAX_FAULTS:
                return {}, problems
            lines[number - 1] = ""
