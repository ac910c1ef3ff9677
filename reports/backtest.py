"""The back-test as a person reads it: one line a policy, then what the plan did and why."""

from __future__ import annotations

from typing import Any

from reports.numbers import counted, percent, plain_amount, share
from reports.terminal import table_text

_NUMBERS = ("USD", "over foresight", "reserved", "on demand", "spot")


def backtest_text(document: dict[str, Any]) -> str:
    """The document of `loadfactor backtest --json` as text; the same numbers, rounded."""
    policies = document["policies"]
    lines = [
        f"{counted(document['train_hours'], 'hour')} of history, "
        f"{counted(document['test_hours'], 'hour')} unseen; USD of the unseen part",
        "",
        _table([_row(one) for one in policies]),
        "",
        "foresight is the best constant level with the unseen part known: no rival, and the bound "
        "of constant levels; steps that follow a growing demand can cost less",
    ]
    interval = document["interval"]
    if interval and interval["hours"]:
        lines.append(
            f"demand lay in the planned {share(interval['share'])} range in "
            f"{share(interval['covered_share'])} of {counted(interval['hours'], 'hour')}"
        )
    plan = next(one for one in policies if "decisions" in one)
    lines.append(_losses(plan))
    lines += [
        f"hour {step['hour']}: {_bought(step['bought_gpus'])}: {step['reason']}"
        for step in plan["decisions"]
    ]
    return "\n".join(lines)


def _table(rows: list[dict[str, str]]) -> str:
    """The rows under their names, numbers to the right."""
    for name in _NUMBERS:
        width = max(len(name), *(len(row[name]) for row in rows))
        for row in rows:
            row[name] = row[name].rjust(width)
    return table_text(rows, list(rows[0]))


def _row(one: dict[str, Any]) -> dict[str, str]:
    costs = one["costs"]
    return {
        "policy": one["policy"],
        "USD": plain_amount(one["usd"]),
        "over foresight": percent(one["over_foresight"]),
        "reserved": plain_amount(costs["reserved"]),
        "on demand": plain_amount(costs["on_demand"]),
        "spot": plain_amount(costs["spot"]),
        "reserved GPUs": _levels([step["gpus"] for step in one["reserved_gpus"]]),
    }


def _levels(gpus: list[int]) -> str:
    """The level, or the first and the last of several."""
    if len(gpus) == 1:
        return f"{gpus[0]}"
    return f"{gpus[0]} to {gpus[-1]} in {len(gpus)} steps"


def _bought(gpus: int) -> str:
    return f"{counted(gpus, 'GPU')} reserved" if gpus else "nothing reserved"


def _losses(plan: dict[str, Any]) -> str:
    cases = [
        f"{percent(case['lost_share'])} if {share(case['failing_share'])} of them fail"
        for case in plan["if_on_demand_fails"]
    ]
    return f"demand lost to on-demand requests that find no GPU: {', '.join(cases)}"
