"""A second method: the problem format read word for word into one program, nothing reduced.

It shares nothing with the planner but the records of the problem, and HiGHS itself.
"""

from __future__ import annotations

import math

import highspy
import numpy as np

from planner import solvers
from planner.problem import ClassKind


class Program:
    """Columns and rows collected one by one."""

    def __init__(self):
        self.columns, self.rows = [], []

    def column(self, cost=0.0, low=0.0, high=math.inf, whole=False):
        self.columns.append((cost, low, high, whole))
        return len(self.columns) - 1

    def row(self, terms, low=-math.inf, high=math.inf):
        self.rows.append((terms, low, high))

    def least(self):
        with solvers.silence():
            highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)  # one process has one number of them
        highs.setOptionValue("mip_rel_gap", 0.0)
        for number, (cost, low, high, whole) in enumerate(self.columns):
            highs.addCol(cost, low, high, 0, [], [])
            if whole:
                highs.changeColIntegrality(number, highspy.HighsVarType.kInteger)
        for terms, low, high in self.rows:
            sums = {}
            for column, value in terms:
                sums[column] = sums.get(column, 0.0) + value
            index = np.array(list(sums), dtype=np.int32)
            highs.addRow(low, high, len(sums), index, np.array(list(sums.values()), dtype=float))
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return highs.getInfo().objective_function_value


def optimum(asked):
    """The least cost of a problem in USD; instances are not whole on demand."""
    program = Program()
    stage = first_stage(asked, program)
    totals = [scenario_cost(asked, program, stage, scenario) for scenario in asked.scenarios]
    for scenario, terms in zip(asked.scenarios, totals, strict=True):
        total = program.column(scenario.p)
        program.row([(total, 1.0), *((column, -price) for column, price in terms)], 0.0, 0.0)
        stage["totals"].append((scenario.p, total))
    if asked.cvar is not None:
        eta = program.column(asked.cvar.weight, low=-math.inf)
        for p, total in stage["totals"]:
            above = program.column(asked.cvar.weight * p / (1 - asked.cvar.beta))
            program.row([(above, 1.0), (total, -1.0), (eta, 1.0)], 0.0)
    return program.least() * asked.hour_weight


def hours_there(asked, held):
    last = asked.hours if held.term is None else min(asked.hours, held.start + held.term)
    return range(held.start, last)


def hours_paid(asked, held):
    return asked.hours - held.start if held.term is None else held.term


def first_stage(asked, program):
    stage = {"ways": [], "blocks": [], "plans": {}, "totals": []}
    spent = []
    for one in asked.offers:
        for way in one.reservations:
            count = program.column(way.rate * one.gpus * hours_paid(asked, way), whole=True)
            stage["ways"].append((one, hours_there(asked, way), count))
            spent.append((count, way.upfront * one.gpus))
    for block in asked.blocks:
        cost = block.price * block.gpus * block.length
        count = program.column(cost, high=block.max, whole=True)
        stage["blocks"].append((block, count))
    for plan in asked.savings_plans:
        commitment = program.column(hours_paid(asked, plan))
        stage["plans"][plan.provider] = (hours_there(asked, plan), commitment)
    if asked.upfront_budget is not None:
        program.row(spent, high=asked.upfront_budget)
    for limit in asked.commitment_limits:
        counted = [(n, one.gpus) for one, _, n in stage["ways"] if one.id in limit.offers]
        for provider, (_, commitment) in stage["plans"].items():
            rates = [
                one.sp_rate
                for one in asked.offers
                if one.id in limit.offers and one.provider == provider and one.sp_rate
            ]
            if rates:
                counted.append((commitment, 1 / min(rates)))
        program.row(counted, high=limit.gpus)
    return stage


def scenario_cost(asked, program, stage, scenario):
    """The rows of a scenario; its cost as columns with prices."""
    cost = []
    done = {one.id: [] for one in asked.classes}  # columns with useful GPUs of hours past
    for hour in range(asked.hours):
        uses = []  # (class, offer or None, kind, column, useful)
        for one in asked.classes:
            short = program.column()
            cost.append((short, one.shortage_penalty))
            uses.append((one, None, "shortage", short, 1.0))
            for name in one.offers:
                sold = next(o for o in asked.offers if o.id == name)
                egress = sold.egress.get(one.id, 0.0)
                prices = {"reserved": 0.0, "on_demand": sold.on_demand, "spot": sold.spot}
                if sold.sp_rate is not None and sold.provider in stage["plans"]:
                    prices["savings_plan"] = 0.0
                for kind, price in prices.items():
                    if price is not None:
                        column = program.column()
                        cost.append((column, price + egress))
                        useful = sold.spot_throughput if kind == "spot" else 1.0
                        uses.append((one, sold, kind, column, useful))
        shared_rows(asked, program, stage, uses, hour)
        for one in asked.classes:
            mine = [use for use in uses if use[0] is one]
            serve(asked, program, (scenario, hour), one, mine, done[one.id])
            done[one.id] += [(column, useful) for *_, column, useful in mine]
    return cost


def shared_rows(asked, program, stage, uses, hour):
    for sold in asked.offers:
        there = [
            (column, -one.gpus)
            for one, hours, column in stage["ways"]
            if one is sold and hour in hours
        ]
        there += [
            (column, -b.gpus)
            for b, column in stage["blocks"]
            if b.offer == sold.id and b.start <= hour < b.start + b.length
        ]
        owned = sum(e.gpus for e in sold.existing if hour < e.until_hour)
        used = [(c, 1.0) for _, o, kind, c, _ in uses if o is sold and kind == "reserved"]
        program.row(used + there, high=owned)
    for provider, (hours, commitment) in stage["plans"].items():
        covered = [
            (c, o.sp_rate)
            for _, o, kind, c, _ in uses
            if kind == "savings_plan" and o.provider == provider
        ]
        program.row([*covered, (commitment, -1.0 if hour in hours else 0.0)], high=0.0)
    for quota in asked.quotas:
        kinds = {"on_demand": {"on_demand", "savings_plan"}, "spot": {"spot"}}
        counted = set().union(*(kinds[use] for use in quota.uses))
        terms = [
            (c, 1.0 if quota.vcpus is None else o.vcpus / o.gpus)
            for _, o, kind, c, _ in uses
            if kind in counted and (o.provider, o.region) == (quota.provider, quota.region)
        ]
        program.row(terms, high=quota.gpus if quota.vcpus is None else quota.vcpus)


def available(scenario, sold, hour):
    """Shares of spot and of on demand that there are of an offer in an hour."""
    found = []
    for own, by_offer in (
        (sold.spot_available, scenario.spot_available),
        (sold.on_demand_available, scenario.on_demand_available),
    ):
        series = by_offer.get(sold.id, own)
        found.append(1.0 if series is None else float(series[hour]))
    return found


def serve(asked, program, at, one, mine, done):
    """Balance, window and limits of a class in an hour; `done` is its use in hours past."""
    scenario, hour = at
    work = scenario.demand[one.id]
    served = [(column, useful) for *_, column, useful in mine]
    ready = float(sum(work[: hour + 1]))
    if one.kind is ClassKind.FIRM:
        need, past = float(work[hour]), []
        program.row(served, need, need)
        spot = [(c, useful) for _, _, kind, c, useful in mine if kind == "spot"]
        program.row(spot, high=(1 - one.min_firm_share) * need)
    else:
        need, past = ready, done
        last = asked.hours - 1
        due = ready if hour == last else float(sum(work[: max(hour - one.window + 1, 0)]))
        program.row(done + served, due, ready)
    for name in one.offers:
        sold = next(o for o in asked.offers if o.id == name)
        spot, on_demand = available(scenario, sold, hour)
        if one.kind is ClassKind.FIRM and one.spot_max_share_per_offer is not None:
            spot = min(spot, one.spot_max_share_per_offer)
        for share, kinds in ((spot, ("spot",)), (on_demand, ("on_demand", "savings_plan"))):
            used = [(c, u) for _, o, kind, c, u in mine if o is sold and kind in kinds]
            waited = [(column, share * useful) for column, useful in past]
            program.row(used + waited, high=share * need)
