"""Does it add up: each identity of a bill, its invoices and its commitments, right and wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal as D

import pandas as pd

from data import frames
from data.frames import conform
from data.identities import broken, identities
from data.schema import FLEET_HOURS, INVOICES
from planner.reconcile import (
    Books,
    commitment_findings,
    identity_findings,
    invoice_findings,
    measured_findings,
    reconcile,
    term_findings,
)
from tests import bills
from tests import fleet as t

PLAN = {"purchase_option": "savings_plan", "commitment_id": "arn:aws:sp/sp-1"}
RESERVED = {"purchase_option": "reserved", "commitment_id": "arn:aws:ri/ri-1"}


def covered(at: int, effective: str = "60", **more) -> dict:
    return t.charge(start=at, billed_cost=D("98.32"), effective_cost=D(effective),
                    commitment_status="used", **(PLAN | more))  # fmt: skip


def negation(at: int, cost: str = "-98.32") -> dict:
    return t.charge(None, start=at, gpus=0, charge_type="adjustment", billed_cost=D(cost),
                    effective_cost=D(0), **PLAN)  # fmt: skip


def fee(at: int, unused: str, committed: str | None = "75", **more) -> dict:
    row = {**PLAN, "charge_type": "fee", "commitment_status": "unused", "billed_cost": D(75),
           "effective_cost": D(unused), "committed_cost": committed and D(committed)}  # fmt: skip
    return t.charge(None, start=at, gpus=0, **(row | more))


def invoices(*rows: dict) -> pd.DataFrame:
    base = {"unit": "u", "cloud": "aws", "billing_period": "2026-11", "currency": "USD",
            "export_id": "i"}  # fmt: skip
    full = [{**base, "source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    return conform(pd.DataFrame(full, columns=INVOICES.names), INVOICES)


def test_a_plan_that_adds_up_and_one_whose_rows_are_missing():
    # sp-1: 98.32 - 98.32 = 0 and 60 + 15 = 75 in each hour. sp-2 lacks a negation (98.32 left) and
    # the covered rows of a shared account: 15 of 75. sp-3 states no commitment: only its hours.
    two = {"commitment_id": "arn:aws:sp/sp-2"}
    three = {"commitment_id": "arn:aws:sp/sp-3"}
    bill = [row for at in range(2) for row in (covered(at), negation(at), fee(at, "15"))]
    bill += [covered(0, "0", **two), fee(0, "15", **two)]
    bill += [covered(0, **three), negation(0) | three, fee(0, "15", None, **three)]
    found = identities(t.billing(bill))
    shown = [(one.commitment[-4:], one.check, one.difference, one.holds) for one in found]
    assert shown == [
        ("sp-1", "savings_plan_negation", 0, True),
        ("sp-1", "savings_plan", 0, True),
        ("sp-2", "savings_plan_negation", D("98.32"), False),
        ("sp-2", "savings_plan", -60, False),
        ("sp-3", "savings_plan_negation", 0, True),
    ]
    rows = {(row.check, row.severity): row for row in identity_findings(found)}
    wrong = rows["adds_up_savings_plan", "warning"]
    assert (wrong.scope, wrong.amount) == ("aws/sp-2/2026-11", -60)
    right = rows["adds_up_savings_plan", "info"]
    assert (right.count, right.amount) == (1, 0)
    assert "1 hold, over 150.00" in right.detail


def test_errors_of_single_hours_do_not_make_up_for_each_other():
    # One negation too many in hour 0 and one too few in hour 1: 0 over the month, 196.64 by hours.
    bill = [covered(0), negation(0), negation(0), covered(1), fee(0, "0", "60"), fee(1, "0", "60")]
    (plain, whole) = identities(t.billing(bill))
    assert (plain.difference, plain.holds) == (D("196.64"), False)
    assert whole.holds


def test_a_reservation_settles_once_its_month_is_final():
    # Fee and upfront share 1000: 640 used + 360 unused in October; in November, still open, only
    # 100 of 1000 so far. September lacks what was used.
    def month(period: str, used: str | None, unused: str) -> list[dict]:
        more = {**RESERVED, "billing_period": period}
        rows = [fee(0, unused, "1000", **more)]
        return rows + ([covered(0, used, **more)] if used else [])

    bill = [*month("2026-09", None, "360"), *month("2026-10", "640", "360")]
    bill += month("2026-11", "60", "40")
    found = identities(t.billing(bill))
    assert [(one.billing_period, one.difference, one.is_final) for one in found] == [
        ("2026-09", -640, True),
        ("2026-10", 0, True),
        ("2026-11", -900, False),
    ]
    assert [one.billing_period for one in broken(found)] == ["2026-09"]


def test_invoices_are_held_against_what_was_billed():
    gcp = {"source": "gcp", "dataset": "detailed", "billing_account": "B-1", "account": "p"}
    bill = [
        t.charge(billed_cost=D(600)),
        t.charge("i-2", billed_cost=D(400), account="222"),
        t.charge("vm", billed_cost=D(75), **gcp),  # 100 of cost and 25 of credits
        t.charge("vm", dataset="amortized", source="azure", billing_account="E", billed_cost=None),
        t.charge("i-3", billed_cost=D(7), currency="EUR"),
    ]
    stated = invoices(
        {"account": "PAYER", "amount": "1004"},  # 4 of 1004 is less than half a percent
        {"account": "222", "amount": "500"},
        {"cloud": "gcp", "amount": "75"},
        {"cloud": "azure", "account": "e", "amount": "98"},
        {"amount": "7", "currency": "EUR"},
        {"amount": "9", "billing_period": "2026-08"},
    )
    books = Books(t.billing(bill), stated, t.owned(), frames.empty(FLEET_HOURS), t.window(24),
                  t.window(24).grid())  # fmt: skip
    found = [row for row in reconcile(books) if row.check == "adds_up_invoice"]
    assert [(row.scope, row.severity, row.amount) for row in found] == [
        ("aws/PAYER/2026-11", "info", -4),
        ("aws/222/2026-11", "warning", -100),
        ("gcp/all/2026-11", "info", 0),
        ("azure/e/2026-11", "warning", -98),
        ("aws/all/2026-11", "info", 0),
        ("aws/all/2026-08", "warning", -9),
    ]
    assert "no billed cost" in found[3].detail
    assert "nothing was read" in found[5].detail
    assert invoice_findings(invoices(), []) == []


def test_azures_two_views_agree_on_what_no_commitment_covers():
    def row(view: str, cost: str, period: str, **more) -> dict:
        column = "billed_cost" if view == "actual" else "effective_cost"
        return t.charge(source="azure", dataset=view, billing_period=period,
                        **({"effective_cost": None, column: D(cost)} | more))  # fmt: skip

    bill = [
        row("actual", "100", "2026-11"), row("amortized", "100.50", "2026-11"),
        row("actual", "5000", "2026-11", purchase_option="reserved", charge_type="fee"),
        row("actual", "100", "2026-12"), row("amortized", "80", "2026-12"),
        row("actual", "100", "2027-01"),
    ]  # fmt: skip
    books = Books(t.billing(bill), invoices(), t.owned(), frames.empty(FLEET_HOURS), t.window(24),
                  t.window(24).grid())  # fmt: skip
    found = [row for row in reconcile(books) if row.check == "adds_up_azure_views"]
    assert [(row.scope, row.severity, row.amount) for row in found] == [
        ("azure/payer/2026-11", "info", D("0.5")),
        ("azure/payer/2026-12", "warning", -20),
    ]


def test_focus_commitments_are_judged_over_their_whole_term_only():
    # 2.00 bought, 1.50 used + 0.50 unused: equal over the term of a day, and within it not yet.
    def rows(name: str, used: str) -> list[dict]:
        more = {"dataset": "focus", "commitment_id": name, "purchase_option": "reserved"}
        return [
            t.charge(None, charge_type="fee", billed_cost=D(2), effective_cost=D(0), **more),
            t.charge(hours=24, billed_cost=D(0), effective_cost=D(used), **more),
        ]

    day = {"start": t.hour(0), "end": t.hour(24)}
    owned = t.owned({"id": "c-1", **day}, {"id": "c-2", **day}, {"id": "c-3"})
    bill = [*rows("x/c-1", "2"), *rows("x/c-2", "1.5"), *rows("x/c-3", "0.1"), *rows("x/c-4", "1")]
    found = term_findings(t.billing(bill), owned)
    assert [(row.scope, row.severity, row.amount) for row in found] == [
        ("aws/c-1", "info", 0),
        ("aws/c-2", "warning", D("-0.5")),
    ]


def test_used_and_unused_parts_are_what_a_commitment_costs_by_its_rate():
    # A node at 32 an hour: 18 hours used + 6 unused = 768 of a day. cb-1 has 12 hours in it.
    day = bills.window()
    paid = {"purchase_option": "reserved", "rate": "4"}
    used = bills.node_hours("i-1", range(18), commitment_id="arn/ri-1", **paid)
    spare = bills.node_hours("commitment:ri-1", range(18, 24), commitment_id="arn/ri-1", **paid)
    block = bills.node_hours("i-2", range(12, 20), commitment_id="cb-1", **paid)
    term = {"instance_type": "p5.48xlarge", "count": 1, "usd_per_instance_hour": "32"}
    term |= {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2027, 1, 1, tzinfo=UTC)}
    half = {"start": day.start + (day.end - day.start) / 2}
    owned = bills.commitments(
        {"id": "ri-1", "kind": "reserved", **term},
        {"id": "cb-1", "kind": "capacity_block", **term, **half},
        {"id": "ri-9", "kind": "reserved", **term, "account": "elsewhere"},
        {"id": "sp-1", "kind": "savings_plan", "usd_per_hour": "1", **term, "count": None},
    )
    fleet = bills.fleet(used, spare, block)
    books = Books(None, invoices(), owned, fleet, day, day.grid())
    found = {row.scope: row for row in commitment_findings(books)}
    assert sorted(found) == ["aws/cb-1", "aws/ri-1"]
    assert (found["aws/ri-1"].severity, found["aws/ri-1"].amount) == ("info", 0)
    assert "used 576.00 + unused 192.00" in found["aws/ri-1"].detail
    # 8 hours at 32 of 12: 128 are nowhere.
    assert (found["aws/cb-1"].severity, found["aws/cb-1"].amount) == ("warning", -128)


def test_gpu_hours_that_nobody_measured_are_told_in_dollars_by_machine_type():
    dark = {"state": "unknown", "reason": "no_telemetry"}
    seen = bills.node_hours("i-1", range(3), rate="5")
    unseen = bills.node_hours("i-2", range(3, 5), rate="5", **dark)
    small = bills.node_hours("i-3", range(24), rate="1", gpus=1, instance_type="p5.4xlarge", **dark)
    found = {row.scope: row for row in measured_findings(bills.fleet(seen, unseen, small))}
    large = found["aws/p5.48xlarge"]
    # 16 of 40 GPU-hours, 80 of 224 dollars.
    assert (large.severity, large.count, large.amount) == ("warning", 16, 80)
    assert "24.00 of 40.00 billed GPU-hours were measured (60.0%)" in large.detail
    # A type without any telemetry is of unknown use, which other findings tell.
    assert (found["aws/p5.4xlarge"].severity, found["aws/p5.4xlarge"].amount) == ("info", 24)
