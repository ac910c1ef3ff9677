"""The documentation says what the program does: commands, targets, tables, and blocks that run.

A `console` block of README.md after the line `<!-- run -->` is run as a person would: lines after
`$ ` are commands, the lines that follow are what they print (`...` stands for any lines). The
blocks of the page run one after the other in one empty folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted({README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")})
# Not needed to say `--help`; together they take more than a second.
HEAVY = ("ibis", "pandas", "numpy", "pyarrow", "duckdb", "pulp", "pydantic", "rich", "jinja2")
MARKED = re.compile(r"^<!-- run -->\n+```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, argparse.ArgumentParser]:
    from planner.cli import build_parser

    (choices,) = (
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(choices)


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from planner.cli import main; sys.exit(main())",
            *words,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_command_says_what_it_does_and_what_its_options_mean():
    for name, parser in commands().items():
        assert parser.description, name
        silent = [action.dest for action in parser._actions if not action.help]
        assert not [dest for dest in silent if dest not in ("paths", "folder", "problem")], name


def test_every_command_stands_in_the_readme():
    text = README.read_text()
    assert not [name for name in commands() if f"loadfactor {name}" not in text]


def test_the_readme_names_no_command_that_does_not_exist():
    named = set(re.findall(r"(?:^\$ |`|bin/)loadfactor ([a-z]+)", README.read_text(), re.MULTILINE))
    assert named <= set(commands())


def test_every_option_that_the_readme_uses_exists():
    for words in re.findall(r"^\$ .*?loadfactor ([a-z]+) (.*)$", README.read_text(), re.MULTILINE):
        name, rest = words
        known = {option for action in commands()[name]._actions for option in action.option_strings}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known, words


def test_every_make_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:^|`)(?:\$ )?make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= targets, page


def test_every_file_that_a_page_links_to_exists():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from planner.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "[]"


def test_help_answers_in_under_three_tenths_of_a_second():
    """The quickest of seven, so that a busy machine does not decide."""
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        assert program("--help").returncode == 0
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.3


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the text that it should print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def matches(expected: str, printed: str) -> bool:
    """Whether the print is the expected one; a line `...` stands for any number of lines."""
    lines = [line.rstrip() for line in expected.strip("\n").splitlines()]
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line) + r"[ ]*\n" for line in lines
    )
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def test_expected_output_may_leave_lines_out():
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert matches("a\n...", "a\n")
    assert not matches("a\nd", "a\nb\nd\n")


@pytest.mark.slow
def test_the_marked_blocks_of_the_readme_print_what_they_say(tmp_path):
    blocks = MARKED.findall(README.read_text())
    assert blocks, "README.md has no block after <!-- run -->"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "HOME": str(tmp_path),
        "COLUMNS": "100",
    }
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".venv").symlink_to(Path(sys.executable).parents[1])
    for command, expected in (step for block in blocks for step in steps(block)):
        run = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path / "run",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode in (0, 4), f"{command}: {run.stderr}"
        assert matches(expected, run.stdout), f"{command} printed:\n{run.stdout}"
