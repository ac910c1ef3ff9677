"""Which threshold alerts fire, told by the fleet's hours alone; sending them is elsewhere.

A rule looks at whole instances: an hour qualifies where all billed GPU-hours of the instance are
in the rule's states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pandas as pd

from data import money
from data.frames import records
from data.hours import HOUR, iso

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_BY = ["cloud", "account", "instance_id"]


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alert fires.

    `states`: those that all GPUs of the instance are in; `for_minutes`: for at least so long;
    `min_usd`: the run cost at least that (0 for any; a run in another currency, whose worth in
    dollars is not known, passes); `scope`: globs by column of FLEET_HOURS that the instance must
    match; `cooldown_minutes`: how long after its end a run is told as resolved.
    """

    name: str
    states: tuple[str, ...] = ("idle_held", "free")
    for_minutes: float = 30.0
    min_usd: Decimal = Decimal(0)
    cooldown_minutes: float = 720.0
    scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Alert:
    """One alert: what is firing since when, or was resolved."""

    rule: str
    scope: str
    currency: str
    since: datetime
    until: datetime
    cost: Decimal
    state: str

    def as_json(self) -> dict[str, Any]:
        """The alert as `loadfactor idle --json` writes it."""
        return {
            "rule": self.rule,
            "scope": self.scope,
            "since": iso(self.since),
            "until": iso(self.until),
            "cost": money.text(self.cost),
            "currency": self.currency,
            "state": self.state,
        }


def evaluate(fleet: pd.DataFrame, rules: Sequence[Rule], end: datetime) -> list[Alert]:
    """The alerts of the newest qualifying run of each instance, sorted.

    `end` is the end of the window: a run that reaches it is firing; one that ended within the
    rule's cool-down before it is resolved; older ones are silent.
    """
    found = []
    for rule in rules:
        for row in records(_runs(_in_scope(fleet, rule), rule)):
            since, until = row["first"].to_pydatetime(), row["last"].to_pydatetime() + HOUR
            if until >= end:
                state = "firing"
            elif end - until <= timedelta(minutes=rule.cooldown_minutes):
                state = "resolved"
            else:
                continue
            scope = "/".join(row[name] for name in _BY)
            currency, cost = row["currency"], row["cost"]
            found.append(Alert(rule.name, scope, currency, since, until, cost, state))
    return sorted(found)


def _in_scope(fleet: pd.DataFrame, rule: Rule) -> pd.DataFrame:
    kept = fleet
    for column, globs in rule.scope.items():
        values = kept[column].astype(object).fillna("").astype(str)
        hits = {
            value: any(fnmatchcase(value.lower(), glob.lower()) for glob in globs)
            for value in values.unique()
        }
        kept = kept[values.map(hits).astype(bool)]
    return kept


def _runs(rows: pd.DataFrame, rule: Rule) -> pd.DataFrame:
    """The newest run of each instance and currency that meets the rule: first, last, cost."""
    columns = [*_BY, "currency", "first", "last", "cost"]
    if not len(rows):
        return pd.DataFrame(columns=columns)
    inside = rows["state"].isin(rule.states)
    bad = rows.assign(is_bad=~inside & (rows["gpu_hours"] != 0))
    hourly = bad.groupby([*_BY, "currency", "hour_start"], as_index=False, sort=True).agg(
        is_bad=("is_bad", "any"), cost=("cost", _known_sum)
    )
    node = bad.groupby([*_BY, "hour_start"], as_index=False)["is_bad"].any()
    hourly = hourly.drop(columns="is_bad").merge(node, on=[*_BY, "hour_start"])
    good = hourly[~hourly["is_bad"]].sort_values([*_BY, "currency", "hour_start"])
    if not len(good):
        return pd.DataFrame(columns=columns)
    gap = good.groupby([*_BY, "currency"])["hour_start"].diff() != pd.Timedelta(hours=1)
    runs = (
        good.assign(run=gap.cumsum())
        .groupby([*_BY, "currency", "run"], as_index=False)
        .agg(first=("hour_start", "min"), last=("hour_start", "max"), cost=("cost", _known_sum))
    )
    minutes = (runs["last"] - runs["first"]).dt.total_seconds() / 60 + 60
    enough = runs["cost"].map(lambda cost: cost >= rule.min_usd) | (runs["currency"] != "USD")
    meets = runs[(minutes >= rule.for_minutes) & enough]
    newest = meets.sort_values("first").drop_duplicates([*_BY, "currency"], keep="last")
    return newest[columns]


def _known_sum(costs: pd.Series) -> Decimal:
    return money.total(costs.dropna())
