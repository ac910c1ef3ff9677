"""The command line: every command, its options and their help."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NoReturn

from data.errors import UsageError
from planner import __version__

# Days that a run may work as of: outside of them a year is mistyped, and dates would overflow.
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2200, 12, 31)
_LACKING = "the following arguments are required"


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._words: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(args or [])
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        unknown = self._unknown_options() if message.startswith(_LACKING) else []
        if unknown:  # what was written comes before what is lacking
            message = f"unrecognized arguments: {' '.join(unknown)}"
        raise UsageError(f"{message}; see '{self.prog} --help'")

    def _unknown_options(self) -> list[str]:
        before = self._words[: self._words.index("--")] if "--" in self._words else self._words
        options = [word for word in before if word.startswith("-") and word != "-"]
        return [word for word in options if word.split("=")[0] not in self._option_string_actions]


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day, write YYYY-MM-DD") from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise argparse.ArgumentTypeError(f"{text!r} does not lie in {FIRST_DAY} to {LAST_DAY}")
    return day


def _part(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number between 0 and 1")
    return share


def _whole(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text!r} does not lie in {low} to {high}")
    return number


def _weeks(text: str) -> int:
    return _whole(text, 1, 520)


def _delay(text: str) -> int:
    return _whole(text, 0, 87_600)


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _names(text: str) -> list[str]:
    names = _columns(text)
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing; leave the option out for all")
    return names


def _common(is_first: bool) -> _Parser:
    """Options that stand before or after the command; those after it do not undo those before."""
    missing = None if is_first else argparse.SUPPRESS
    off = False if is_first else argparse.SUPPRESS
    today = datetime.now(tz=UTC).date() if is_first else argparse.SUPPRESS
    common = _Parser(add_help=False)
    group = common.add_argument_group("options of every command")
    group.add_argument(
        "--config", type=Path, metavar="FILE", default=missing, help="default: ./loadfactor.toml"
    )
    group.add_argument(
        "--store", type=Path, metavar="DIR", default=missing, help="default: the config's"
    )
    group.add_argument(
        "--date", type=_day, metavar="YYYY-MM-DD", default=today,
        help="the day to work as of; default today, UTC",
    )  # fmt: skip
    for name, help_text in (
        ("--json", "one JSON document on stdout"),
        ("--quiet", "warnings and errors only"),
        ("--verbose", "more log, and tracebacks"),
    ):
        group.add_argument(name, action="store_true", default=off, help=help_text)
    return common


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="loadfactor",
        description="Plans reserved, on-demand and spot GPU capacity from billing and utilization.",
        epilog="Exit codes: 0 done; 1 failed or a delivery rejected; 2 wrong usage or "
        "configuration; 3 refused by a guard; 4 done, but an input is stale or carries a warning.",
        parents=[_common(is_first=True)],
    )
    parser.add_argument("--version", action="version", version=f"loadfactor {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    common = [_common(is_first=False)]

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help_text, description=help_text, parents=common)

    demo = add("demo", "run the whole nightly job on the bundled, made fleet")
    _add_out(demo)
    init = add(
        "init",
        "write a commented loadfactor.toml; README.md tells how it is used, docs/tables.md "
        "describes the tables that it names",
    )
    init.add_argument(
        "--out", type=Path, metavar="FILE", default=Path("loadfactor.toml"),
        help="where to write it; default ./loadfactor.toml",
    )  # fmt: skip
    _add_load(add("load", "load export files or delivery folders from disk"))
    _add_fetch(add("fetch", "pull the exports of the configured sources, and load what is new"))
    totals = add("totals", "money and hours in the store")
    totals.add_argument(
        "--by", type=_columns, metavar="COL,...", default=["source", "dataset", "billing_period"],
        help="columns to sum by; default source,dataset,billing_period",
    )  # fmt: skip
    add("check", "data quality: gaps, duplicates, late tail, billed against measured hours")
    idle = add("idle", "busy, idle-held, free and unknown GPU-hours and dollars, with alerts")
    idle.add_argument(
        "--by", type=_columns, metavar="COL,...", default=["cloud", "workload_class"],
        help="columns to sum by; default cloud,workload_class",
    )  # fmt: skip
    _add_out(
        add(
            "plan",
            "optimise and recommend from the need that was observed; write the output folder",
        )
    )
    report = add("report", "render a past plan again without solving")
    report.add_argument("folder", type=Path, metavar="DIR")
    _add_solve(add("solve", "the optimiser alone, on a problem file"))
    _add_backtest(
        add("backtest", "what this planner and its rivals would have cost on unseen weeks")
    )
    add("prices", "the price book after its checks, with what was rejected and why")
    add(
        "commitments",
        "what is owned: committed, used and unused as a month of 730 hours, the mean of the "
        "observed hours and no sum of a bill; and when it ends",
    )
    _add_out(add("nightly", "fetch the sources, check, idle, plan and report, as named steps"))
    return parser


def _add_load(load: argparse.ArgumentParser) -> None:
    load.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    load.add_argument("--dataset", metavar="NAME", help="overrule the guess of the layout")
    load.add_argument("--force", action="store_true", help="accept a delivery that shrinks a bill")


def _add_fetch(fetch: argparse.ArgumentParser) -> None:
    fetch.add_argument(
        "--only", type=_names, action="extend", metavar="SOURCE,...", default=[],
        help="names of sources, as the configuration has them, and again for more; default all",
    )  # fmt: skip
    fetch.add_argument(
        "--force", action="store_true",
        help="read again what is known already, and accept a delivery that shrinks a bill",
    )  # fmt: skip


def _add_solve(solve: argparse.ArgumentParser) -> None:
    solve.add_argument("problem", type=Path, metavar="PROBLEM.json")
    solve.add_argument("--gap", type=float, default=1e-4, help="relative gap to prove")
    solve.add_argument(
        "--time-limit", type=float, default=600.0, metavar="SECONDS", help="default 600"
    )
    solve.add_argument(
        "--method",
        choices=["decomposition", "direct"],
        default="decomposition",
        help="decomposition (default) into purchases and hourly dispatch, or direct: the whole "
        "hourly model at once, which refuses a very large one; whole-instance billing "
        "(on_demand_integer) is always solved by direct",
    )
    solve.add_argument(
        "--why",
        action="store_true",
        help="explain each line, limit, rejected offer and shortage (decomposition only); takes "
        "time beyond the limit",
    )
    solve.add_argument(
        "--previous",
        type=Path,
        metavar="RESULT.json",
        help="stay as near to the plan of this earlier --json answer as the tolerance allows "
        "(decomposition only)",
    )
    solve.add_argument(
        "--tolerance",
        type=float,
        default=0.001,
        metavar="SHARE",
        help="share of cost that staying near --previous may take; optimal then means "
        "within gap and tolerance together (default 0.001)",
    )
    solve.add_argument("--solver", choices=["highs", "cbc"], default="highs", help="default highs")


def _add_backtest(backtest: argparse.ArgumentParser) -> None:
    backtest.add_argument(
        "demand", type=Path, metavar="DEMAND.csv",
        help="hour,class,gpus,deferrable_gpus; hour is a whole number or a UTC time",
    )  # fmt: skip
    backtest.add_argument(
        "--prices", type=Path, metavar="PRICES.toml", required=True,
        help="on_demand, reserved, spot, spot_throughput (USD per GPU-hour), term_hours, "
        "gpus_per_instance",
    )  # fmt: skip
    backtest.add_argument(
        "--train-share", type=_part, default=0.5, metavar="SHARE",
        help="share of the hours that are history, above 0 and below 1; default 0.5",
    )  # fmt: skip
    backtest.add_argument(
        "--replan-weeks", type=_weeks, default=4, metavar="WEEKS",
        help="weeks between two planning steps; default 4",
    )  # fmt: skip
    backtest.add_argument(
        "--max-delay-hours", type=_delay, default=24, metavar="HOURS",
        help="hours that deferrable work may wait; default 24",
    )  # fmt: skip
    backtest.add_argument(
        "--spot-availability", type=Path, metavar="FILE.csv",
        help="hour,available (share of the hour with spot), repeated to length; default always",
    )  # fmt: skip


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("loadfactor-out"),
        help="where the folder of the night goes; default ./loadfactor-out",
    )  # fmt: skip
