"""One hour of dispatch as arrays: the rows and columns that every hour repeats.

Rows of an hour, in this order: `meet` one a group (balance), `pool` one a pool, `plan` one a
savings plan, `quota` one a quota, `share` one a group whose spot is bounded jointly, `limit` one
for what is available of an offer to a group by the hour. Columns: the use of each pool by each
group, then every option of every group's menu.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.availability import most_useful, rows_of
from planner.model.options import Use
from planner.optimise.first_stage import plans
from planner.optimise.recourse import KINDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.model.reductions import Reduced

    Array = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

_ENTRIES = 4  # at most: balance, plan or share, quota, limit
RESERVED = -1  # the kind code of pool use


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Where each family of rows begins within an hour, and how many rows an hour has."""

    pool: int
    plan: int
    quota: int
    share: int
    limit: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """The hour. Entry k of column j is `value[j, k]` in row `row[j, k]`, zero where unused.

    `cap` is GPUs per GPU of the group's demand (inf: no cap), `option` the place in the group's
    menu or, for pool use (`kind` RESERVED), the pool. `limits` are the quotas' GPUs, `shares` the
    joint spot shares of the groups `sharing`. `hourly` are the caps of columns whose cap changes by
    the hour (`cap` then is its largest), and `offered` the shares of each limit row, both scenarios
    x hours; `limited` are the groups of the limit rows.
    """

    rows: Rows
    cost: Array
    egress: Array
    useful: Array
    kind: Places
    group: Places
    option: Places
    cap: Array
    row: Places
    value: Array
    limits: Array
    sharing: Places
    shares: Array
    deferrable: Places
    hourly: dict[int, Array]
    limited: Places
    offered: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def unlimited(self) -> npt.NDArray[np.bool_]:
        """Columns that alone can serve any demand: no dispatch is infeasible with them."""
        pool = self.kind == RESERVED
        limited = ((self.row >= self.rows.pool) & (self.value != 0.0)).any(axis=1)
        free: npt.NDArray[np.bool_] = ~pool & ~limited & np.isinf(self.cap)
        return free

    @property
    def waits_limited(self) -> bool:
        """Whether work that may wait has limit rows, which tie its hours in another way."""
        return bool(np.isin(self.limited, self.deferrable).any())

    def hourly_caps(self, scenario: Places, hour: Places) -> Array:
        """Caps of the `hourly` columns, in order, at some hours: hours x columns."""
        none = np.zeros((len(hour), 0))
        return np.hstack([none, *(cap[scenario, hour, None] for cap in self.hourly.values())])

    def shares_offered(self, scenario: Places, hour: Places) -> Array:
        """Shares of the limit rows at some hours: hours x rows."""
        none = np.zeros((len(hour), 0))
        return np.hstack([none, *(one[scenario, hour, None] for one in self.offered)])

    def reduced_costs(self, duals: Array, columns: Places) -> Array:
        """Reduced costs of some columns, hours x columns, from row duals, hours x rows."""
        found = np.broadcast_to(self.cost[columns], (len(duals), len(columns))).copy()
        for entry in range(_ENTRIES):
            found -= duals[:, self.row[columns, entry]] * self.value[columns, entry]
        return found


def template(reduced: Reduced) -> Template:
    """The hour of a reduced problem."""
    groups, providers = reduced.groups, plans(reduced)
    quotas = sorted(reduced.quotas)
    sharing = [n for n, g in enumerate(groups) if g.firm and g.menu.spot_share is not None]
    pool = len(groups)
    plan = pool + len(reduced.pools)
    quota = plan + len(providers)
    share = quota + len(quotas)
    limits = rows_of(reduced)
    limit = share + len(sharing)
    rows = Rows(pool, plan, quota, share, limit, limit + len(limits))
    hourly: dict[int, Array] = {}
    columns: list[tuple[float, float, float, int, int, int, float, list[tuple[int, float]]]] = []
    for number, one in enumerate(reduced.pools):
        for index, egress in one.egress.items():
            entries = [(index, 1.0), (rows.pool + number, 1.0)]
            columns.append((egress, egress, 1.0, RESERVED, index, number, np.inf, entries))
    offers = {offer.id: offer for offer in reduced.problem.offers}
    for index, group in enumerate(groups):
        for position, option in enumerate(group.menu.options):
            entries = [(index, option.useful)]
            if option.plan:
                entries.append((rows.plan + providers.index(option.plan), option.plan_rate))
            if option.quota is not None:
                entries.append((rows.quota + quotas.index(option.quota), option.weight))
            if option.use is Use.SPOT and index in sharing:
                entries.append((rows.share + sharing.index(index), option.useful))
            for number, one_limit in enumerate(limits):
                if one_limit.group == index and position in one_limit.options:
                    entries.append((rows.limit + number, option.useful))
            egress = offers[option.offer].egress.get(group.rules.id, 0.0) if option.offer else 0.0
            # A plan-covered GPU costs its surcharge alone, which is egress.
            kind = "egress" if option.use is Use.SAVINGS_PLAN else str(option.use)
            most = most_useful(reduced, index, position)
            if most is not None and not isinstance(most, float):
                hourly[len(columns)] = most / option.useful
                most = float(most.max())
            cap = np.inf if most is None else most / option.useful
            columns.append(
                (option.price, egress, option.useful, KINDS.index(kind), index, position, cap,
                 entries)
            )  # fmt: skip
    row = np.zeros((len(columns), _ENTRIES), dtype=np.intp)
    value = np.zeros((len(columns), _ENTRIES))
    for number, column in enumerate(columns):
        for entry, (at, amount) in enumerate(column[-1]):
            row[number, entry], value[number, entry] = at, amount
    fields = list(zip(*(column[:-1] for column in columns), strict=True)) or [()] * 7
    return Template(
        rows=rows,
        cost=np.array(fields[0], dtype=float),
        egress=np.array(fields[1], dtype=float),
        useful=np.array(fields[2], dtype=float),
        kind=np.array(fields[3], dtype=np.intp),
        group=np.array(fields[4], dtype=np.intp),
        option=np.array(fields[5], dtype=np.intp),
        cap=np.array(fields[6], dtype=float),
        row=row,
        value=value,
        limits=np.array([reduced.quotas[pair] for pair in quotas], dtype=float),
        sharing=np.array(sharing, dtype=np.intp),
        shares=np.array([groups[n].menu.spot_share for n in sharing], dtype=float),
        deferrable=np.array([n for n, g in enumerate(groups) if not g.firm], dtype=np.intp),
        hourly=hourly,
        limited=np.array([one.group for one in limits], dtype=np.intp),
        offered=tuple(one.share for one in limits),
    )
