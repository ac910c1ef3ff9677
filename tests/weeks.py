"""Seeded random problems of a few days, for comparing one method with another."""

from __future__ import annotations

import numpy as np

from planner.problem import Block, Cvar, Existing, Quota, SavingsPlan
from tests.problems import deferrable, firm, offer, problem


def week(seed, *, full, classes=4, offers=5, hours=60, scenarios=2):
    """A random problem of every kind of purchase, with or without what ties pools together."""
    rng = np.random.default_rng(seed)
    sold = [
        offer(
            f"o{n}",
            float(rng.uniform(3, 5)),
            float(rng.uniform(1.5, 3)),
            gpus=int(rng.choice([1, 4, 8])),
            provider=("aws", "gcp")[n % 2],
            region=f"r{n % 3}",
            spot=float(rng.uniform(1, 2)),
            spot_throughput=0.9,
            sp_rate=float(rng.uniform(2, 3)) if full else None,
            existing=(Existing(float(rng.integers(0, 9)), int(rng.integers(0, hours + 9))),),
        )
        for n in range(offers)
    ]
    names = [one.id for one in sold]
    users = []
    for n in range(classes):
        where = [name for name in names if rng.random() < 0.6] or names[:1]
        if full and n % 3 == 2:
            users.append(deferrable(f"w{n}", where, window=int(rng.integers(1, 9))))
        else:
            share = float(rng.choice([0.2, 1.0]))
            users.append(firm(f"w{n}", where, min_firm_share=share, spot_max_share_per_offer=0.4))
    futures = [
        (1 / scenarios, {one.id: rng.integers(0, 30, hours) for one in users})
        for _ in range(scenarios)
    ]
    more = {"cvar": Cvar(0.3, 0.5), "upfront_budget": 1e6}
    if full:
        more |= {
            "quotas": (Quota("aws", "r0", 20.0), Quota("gcp", "r1", 15.0)),
            "savings_plans": (SavingsPlan("aws"), SavingsPlan("gcp")),
            "blocks": (Block("b", "o0", 8, 10, 20, 2.0, 2),),
        }
    return problem(users, sold, futures, **more)
