"""A plan's changes as text and as JSON."""

from __future__ import annotations

import dataclasses

from reports.changes import changes_json, changes_text
from tests.reports.night import change, money, plan


def with_changes(*changes):
    return dataclasses.replace(plan(), changes=changes)


def test_no_changes_are_said_in_two_words():
    assert changes_text(with_changes()) == "No changes."
    assert changes_text(with_changes(change(current=6))) == "No changes."
    assert changes_json(with_changes()) == []


def test_changes_stand_under_their_pool_with_their_savings():
    listed = (
        change(field="max"),
        change(pool="gcp:b", kind="gcp_mig", cloud="gcp", account="proj-a", region="us-central1",
               name="b", current=None, proposed=4, saving_per_month=money("-300"), why="Grows."),
        change(field="min", current=4, proposed=2, saving_per_month=money("0"), why="Falls."),
    )  # fmt: skip
    assert changes_text(with_changes(*listed)) == (
        "aws_asg train-a (aws, 111122223333, us-east-1)\n"
        "  max nodes: 10 -> 6  (saves $1,200 a month)\n"
        "      Six nodes serve the 99th percentile of need.\n"
        "  min nodes: 4 -> 2\n"
        "      Falls.\n"
        "gcp_mig b (gcp, proj-a, us-central1)\n"
        "  max nodes: not read -> 4  (costs $300 a month more)\n"
        "      Grows.\n"
        "\n"
        "3 changes in 2 pools, saves $900 a month. Shown only: nothing was changed."
    )  # 1,200 - 300 = 900


def test_json_has_the_published_shape():
    (first, second) = changes_json(with_changes(change(), change(field="min", current=6)))
    assert first == {
        "pool": "aws:train-a",
        "kind": "aws_asg",
        "name": "train-a",
        "field": "max",
        "current": 10,
        "proposed": 6,
        "status": "would_change",
        "guard": None,
        "reason": "Six nodes serve the 99th percentile of need.",
    }
    assert second["status"] == "unchanged"
