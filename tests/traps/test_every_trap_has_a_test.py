"""Every trap of billing data and every known fault of reading and amortising has a test by name."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAME = re.compile(r"^def test_((?:trap|bl)_\d\d)_\w+\(", re.MULTILINE)
TRAPS = {f"trap_{number:02}" for number in range(1, 31)}
FAULTS = {f"bl_{number:02}" for number in (1, 2, 4, 5, 7, 9, 10, 11, 13)}


def test_every_trap_and_every_known_fault_has_a_test() -> None:
    found = {
        name
        for path in TESTS.rglob("test_*.py")
        if "parts" not in path.relative_to(TESTS).parts
        for name in NAME.findall(path.read_text(encoding="utf-8"))
    }
    assert sorted(TRAPS | FAULTS) == sorted(found & (TRAPS | FAULTS))
    assert {name for name in found if name.startswith("trap_")} <= TRAPS
