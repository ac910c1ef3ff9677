"""The house rules that a linter does not know: locks, layers, sizes, what the repository names."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("data", "planner", "providers", "reports")
EDGES = ("planner.cli", "planner.nightly", "planner.apply")
LOCKS = ("requirements.lock", "requirements-parts.lock", "requirements-bigquery.lock")

# Written in two halves, so that this file does not hold what it forbids.
FORBIDDEN = tuple(
    first + second
    for first, second in (
        ("/ro", "ot/"),
        ("/wo", "rk/"),
        ("/opt/whe", "els"),
        ("/opt/py", "pi"),
        ("/tmp/", "lf"),
        ("pyp", "i.org"),
        ("files.python", "hosted.org"),
        ("registry.npm", "js.org"),
        ("deb.deb", "ian.org"),
    )
)


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def python_files() -> list[Path]:
    return [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]


def other_python_files() -> list[Path]:
    return [path for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")]


def lock_entries(name: str) -> list[str]:
    """Requirements of a lock, each with its continuation lines joined."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_has_an_exact_version_and_a_hash(name):
    entries = lock_entries(name)
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==[^ ;]+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("name", LOCKS)
def test_locks_hold_no_address_link_or_path(name):
    text = (ROOT / name).read_text()
    for word in ("://", "--index", "--extra-index", "--find-links", "--trusted", " @ ", "/"):
        assert word not in text, word


def locked_names(name: str) -> set[str]:
    return {entry.split("==")[0] for entry in lock_entries(name)}


def test_locks_hold_every_dependency_that_the_project_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    named = project["project"]["dependencies"] + groups["dev"] + groups["build"]

    def bare(requirement: str) -> str:
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert match
        return match.group().lower()

    assert {bare(each) for each in named} <= locked_names("requirements.lock")
    assert {bare(each) for each in groups["parts"]} <= locked_names("requirements-parts.lock")


def test_no_package_is_locked_in_both_locks():
    assert not locked_names("requirements.lock") & locked_names("requirements-parts.lock")


def test_layers_are_kept():
    run = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_planning_core_does_not_import_the_edge_modules():
    graph = grimp.build_graph("planner", cache_dir=None)
    core = [name for name in graph.modules if not name.startswith(EDGES)]
    reached = {
        (name, imported)
        for name in core
        for imported in graph.find_modules_directly_imported_by(name)
        if imported.startswith(EDGES)
    }
    assert not reached


def test_every_make_target_has_a_line_of_help():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    for target in phony.group(1).split():
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def test_no_module_is_longer_than_four_hundred_lines():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in [*python_files(), *other_python_files()]
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_every_module_says_what_it_answers():
    silent = [
        path for path in python_files() if not path.read_text().lstrip().startswith(('"""', 'r"""'))
    ]
    assert not silent


def test_tracked_files_name_no_machine_path_and_no_registry():
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [(path.name, word) for word in FORBIDDEN if word in text]
    assert not found


def test_no_single_tracked_file_is_larger_than_five_megabytes():
    large = [path.name for path in tracked_files() if path.stat().st_size > 5_000_000]
    assert not large


@pytest.mark.slow
def test_the_wheel_holds_the_four_packages_with_their_data(tmp_path):
    """Built offline, with the locked build backend, from a copy so that no build folder is left."""
    copy = tmp_path / "source"
    for path in tracked_files():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--disable-pip-version-check"),
            *("--wheel-dir", str(tmp_path / "wheels"), str(copy)),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "wheels").glob("loadfactor-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == set(PACKAGES)
    shipped = {
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] in PACKAGES
    }
    assert names == shipped
