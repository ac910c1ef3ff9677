"""The table of the optimiser: time, memory and gap of generated problems, beside the baseline.

    bench_optimise.py [--sizes S M L XL] [--seeds 1 2 3] [--kinds core full] [--baseline]

Problems come from ../shared/problems/make_problem.py and the baseline (the direct LP relaxation)
from direct_baseline.py there, run by --baseline-python, which needs numpy, scipy and highspy.
Each solve has a process of its own: CPU seconds are all of it, reading the file included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROBLEMS = ROOT.parent / "shared" / "problems"
SIZES = {
    "S": (5, 6, 168, 1),
    "M": (20, 30, 168, 5),
    "L": (50, 60, 8760, 1),
    "XL": (200, 100, 168, 20),
}
_ONE = """
import json, resource, sys
from pathlib import Path
from planner.problem_file import read
from planner.solve import solve
result = solve(read(Path(sys.argv[1])), gap=float(sys.argv[2]), method="decomposition")
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"status": result.status, "objective": result.objective, "gap": result.gap,
    "wall": result.seconds, "cpu": usage.ru_utime + usage.ru_stime,
    "mib": usage.ru_maxrss / 1024}))
"""


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--kinds", nargs="+", default=["core", "full"], choices=["core", "full"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--gap", default="1e-4")
    parser.add_argument("--baseline", action="store_true", help="run the direct LP beside M")
    parser.add_argument("--baseline-python", default=sys.executable)
    options = parser.parse_args()
    out = sys.stdout
    out.write(
        "| problem | status | gap | wall s | CPU s | MiB | us per cell | direct LP wall s |\n"
    )
    out.write("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            for size in options.sizes:
                for seed in options.seeds:
                    path = _problem(Path(folder), size, kind, seed)
                    out.write(_row(path, size, options) + "\n")
                    out.flush()


def _problem(folder: Path, size: str, kind: str, seed: int) -> Path:
    path = folder / f"{size}_{kind}_{seed}.json.gz"
    maker = [sys.executable, str(PROBLEMS / "make_problem.py"), size, "--seed", str(seed)]
    full = ["--full"] if kind == "full" else []
    subprocess.run([*maker, *full, "-o", str(path)], check=True)
    return path


def _row(path: Path, size: str, options: argparse.Namespace) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _ONE, str(path), options.gap]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    classes, offers, hours, scenarios = SIZES[size]
    per_cell = found["cpu"] / (classes * offers * hours * scenarios) * 1e6
    beside = ""
    if options.baseline and size == "M":
        baseline = [options.baseline_python, str(PROBLEMS / "direct_baseline.py"), str(path)]
        ran = subprocess.run(baseline, capture_output=True, text=True, check=True)
        direct = json.loads(ran.stdout.splitlines()[-1])
        wall = sum(direct[f"{part}_seconds"] for part in ("read", "build", "solve"))
        beside = f"{wall:.1f} (CPU {direct['cpu_seconds']:.1f})"
    return (
        f"| {path.name.removesuffix('.json.gz')} | {found['status']} | {found['gap']:.1e} "
        f"| {found['wall']:.1f} | {found['cpu']:.1f} | {found['mib']:.0f} | {per_cell:.2f} "
        f"| {beside} |"
    )


if __name__ == "__main__":
    main()
