"""The table of the optimiser: time, memory and gap of generated problems, beside the baseline.

    bench_optimise.py [--sizes S M L XL] [--seeds 1 2 3] [--kinds core full] [--only table]

Problems come from ../shared/problems/make_problem.py, and the baseline (the direct LP relaxation,
no whole numbers, one thread) from direct_baseline.py there; without that folder there is nothing
to measure, and it says so. Every solve is a process of its own: CPU seconds are all of it, the
reading of the file included, and memory is its largest resident set. Three parts: `table`;
`nights`, eight nights in which prices and demand move a little, each given the night before; and
`limit`, the largest problem stopped after five seconds. Exits with 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PROBLEMS = ROOT.parent / "shared" / "problems"
PARTS = ("table", "nights", "limit")
SIZES = {
    "S": (5, 6, 168, 1),
    "M": (20, 30, 168, 5),
    "L": (50, 60, 8760, 1),
    "XL": (200, 100, 168, 20),
}
GAP = 1e-4
# CPU seconds and MiB allowed; sizes without a figure are bound by the gap alone.
MOST_CPU = {"L core": 5.0, "XL core": 6.0, "L full": 150.0, "XL full": 150.0}
MOST_MIB = 1536.0
MOST_OF_BASELINE = 0.4
NIGHTS = 8
MOST_CHURN, MOST_EXTRA = 0.01, 0.001
LIMIT, MOST_WALL = 5.0, 10.0
_ONE = """
import json, resource, sys, time
from pathlib import Path
began = time.perf_counter()
from planner.problem_file import read
from planner.solve import solve
problem = read(Path(sys.argv[1]))
was_read = time.perf_counter()
how = {"gap": float(sys.argv[2]), "time_limit": float(sys.argv[3])}
result = solve(problem, method="decomposition", **how)
ended = time.perf_counter()
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"status": result.status, "objective": result.objective, "gap": result.gap,
    "wall": ended - began, "solve": ended - was_read, "cpu": usage.ru_utime + usage.ru_stime,
    "mib": usage.ru_maxrss / 1024}))
"""


@dataclass(slots=True)
class Bench:
    """What is measured, and which promises did not hold."""

    folder: Path
    options: argparse.Namespace
    broken: list[str]

    def table(self) -> None:
        """A row for each problem, printed as soon as it is known; then M full in all."""
        _say("| problem | status | gap | wall s | CPU s | MiB | us per cell | direct LP wall s |")
        _say("| --- | --- | --- | --- | --- | --- | --- | --- |")
        ours = direct = 0.0
        for kind in self.options.kinds:
            for size in self.options.sizes:
                for seed in self.options.seeds:
                    path = self.problem(size, kind, seed)
                    found = solve(path, 600.0)
                    self.check(size, kind, path.name, found)
                    beside = baseline(path) if (size, kind) == ("M", "full") else None
                    _say(row(path, size, found, beside))
                    if beside is not None:
                        ours, direct = ours + found["wall"], direct + beside
        if direct:
            share = ours / direct
            _say(f"\nM full in all: {share:.2f} of the direct LP relaxation's wall time.")
            self.promise(share <= MOST_OF_BASELINE, f"M full takes {share:.2f} of the direct LP")

    def check(self, size: str, kind: str, name: str, found: dict[str, Any]) -> None:
        """Hold one solve to what is promised of its size."""
        proven = found["status"] == "optimal" and found["gap"] <= GAP
        self.promise(proven, f"{name} ended {found['status']} with gap {found['gap']:.1e}")
        most = MOST_CPU.get(f"{size} {kind}")
        if most is not None:
            self.promise(found["cpu"] <= most, f"{name} took {found['cpu']:.1f} s of CPU")
            self.promise(found["mib"] <= MOST_MIB, f"{name} took {found['mib']:.0f} MiB")

    def nights(self) -> None:
        """Eight nights of size M, each given the answer of the night before."""
        for kind in self.options.kinds:
            for seed in self.options.seeds:
                changed, fleet, extra = self._nights(self.problem("M", kind, seed), seed)
                _say(
                    f"M {kind} {seed}: over {NIGHTS} nights {changed} of {fleet} reserved "
                    f"instances changed, at {extra:.4%} of cost."
                )
                name = f"nights of M {kind} {seed}"
                self.promise(changed <= MOST_CHURN * fleet, f"{name}: {changed} of {fleet} changed")
                self.promise(extra <= MOST_EXTRA, f"{name}: {extra:.3%} dearer")

    def _nights(self, path: Path, seed: int) -> tuple[int, int, float]:
        """Most instances changed in a night, the reserved fleet, and the largest extra cost."""
        problem = json.loads(gzip.decompress(path.read_bytes()))
        rng = np.random.default_rng([seed, 8])
        before: dict[str, int] | None = None
        changed, fleet, extra = 0, 0, 0.0
        answer = self.folder / "previous.json"
        for night in range(NIGHTS):
            file = self.folder / "night.json.gz"
            file.write_bytes(gzip.compress(json.dumps(moved(problem, rng, night)).encode(), 1))
            free = command(file, [])
            near = free if before is None else command(file, ["--previous", str(answer)])
            answer.write_text(json.dumps(near))
            counts = {f"{r['offer']} {r['id']}": int(r["count"]) for r in near["reservations"]}
            if before is not None:
                keys = counts.keys() | before.keys()
                moves = sum(abs(counts.get(k, 0) - before.get(k, 0)) for k in keys)
                changed, fleet = max(changed, moves), max(fleet, sum(counts.values()))
                extra = max(extra, near["objective"] / free["bound"] - 1)
            before = counts
        return changed, fleet, extra

    def limit(self) -> None:
        """The largest problem, stopped after five seconds."""
        for seed in self.options.seeds:
            path = self.problem("XL", "full", seed)
            found = solve(path, LIMIT)
            _say(
                f"XL full {seed} with a limit of {LIMIT:g} s: {found['status']} after "
                f"{found['solve']:.1f} s of wall time without reading, gap {found['gap']:.2%}."
            )
            honest = found["status"] == "feasible" and found["solve"] <= MOST_WALL
            self.promise(honest, f"XL full {seed} under a limit: {found}")

    def promise(self, held: bool, what: str) -> None:
        """Note a promise that did not hold."""
        if not held:
            self.broken.append(what)

    def problem(self, size: str, kind: str, seed: int) -> Path:
        """The generated problem, made once."""
        path = self.folder / f"{size}_{kind}_{seed}.json.gz"
        if not path.exists():
            maker = [sys.executable, str(PROBLEMS / "make_problem.py"), size, "--seed", str(seed)]
            full = ["--full"] if kind == "full" else []
            subprocess.run([*maker, *full, "-o", str(path)], check=True)
        return path


def solve(path: Path, limit: float) -> dict[str, Any]:
    """One solve by the default method, in a process of its own."""
    return _json([sys.executable, "-c", _ONE, str(path), str(GAP), str(limit)])


def command(path: Path, more: list[str]) -> dict[str, Any]:
    """One `loadfactor solve`, as a user runs it."""
    program = Path(sys.executable).with_name("loadfactor")
    return _json([str(program), "solve", str(path), "--gap", str(GAP), "--json", *more])


def baseline(path: Path) -> float:
    """Wall seconds of the direct LP relaxation: reading, building and solving."""
    direct = _json([sys.executable, str(PROBLEMS / "direct_baseline.py"), str(path)])
    return sum(float(direct[f"{part}_seconds"]) for part in ("read", "build", "solve"))


def moved(problem: dict[str, Any], rng: np.random.Generator, night: int) -> dict[str, Any]:
    """The problem of a night: prices moved by 0.2%, each hour's demand by 5%, means unchanged."""
    if night == 0:
        return problem
    offers = []
    for offer in problem["offers"]:
        price = {key: offer[key] for key in ("on_demand", "spot", "sp_rate") if offer.get(key)}
        shifted = {key: value * (1 + rng.uniform(-0.002, 0.002)) for key, value in price.items()}
        reservations = [
            one | {"rate": one["rate"] * (1 + rng.uniform(-0.002, 0.002))}
            for one in offer["reservations"]
        ]
        offers.append(offer | shifted | {"reservations": reservations})
    scenarios = []
    for scenario in problem["scenarios"]:
        demand = {}
        for name, series in scenario["demand"].items():
            hours = np.array(series, dtype=float)
            noisy = hours * (1 + rng.uniform(-0.05, 0.05, len(hours)))
            demand[name] = (noisy * (hours.sum() / max(noisy.sum(), 1e-12))).tolist()
        scenarios.append(scenario | {"demand": demand})
    return problem | {"offers": offers, "scenarios": scenarios}


def row(path: Path, size: str, found: dict[str, Any], beside: float | None) -> str:
    """A row of the table."""
    cells = float(np.prod(SIZES[size]))
    cells_text = f"{found['cpu'] / cells * 1e6:.2f}"
    name = path.name.removesuffix(".json.gz").replace("_", " ")
    return (
        f"| {name} | {found['status']} | {found['gap']:.1e} | {found['wall']:.1f} "
        f"| {found['cpu']:.1f} | {found['mib']:.0f} | {cells_text} "
        f"| {'' if beside is None else f'{beside:.1f}'} |"
    )


def _json(line: list[str]) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(f"{' '.join(line)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure what is asked for; exit with 1 where a promise is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--kinds", nargs="+", default=["core", "full"], choices=["core", "full"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    options = parser.parse_args()
    if not PROBLEMS.is_dir():
        _say("The optimiser is not measured: there is no ../shared/problems beside this checkout.")
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options, [])
        for part in options.only:
            getattr(bench, part)()
    for what in bench.broken:
        _say(f"NOT HELD: {what}")
    sys.exit(1 if bench.broken else 0)


if __name__ == "__main__":
    main()
