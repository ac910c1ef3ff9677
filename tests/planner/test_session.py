"""Tables that the configuration names hold as they stand today, whatever was loaded before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from data.errors import ConfigError
from data.hours import Window
from planner.fees import Unspread
from planner.fleet_hours import Fleet
from planner.nightly import open_session
from planner.session import unspread_fees
from planner.settings import Settings
from planner.settings import Thresholds as FleetThresholds
from planner.states import thresholds_of
from providers.files.loading import load

if TYPE_CHECKING:
    from pathlib import Path

    from planner.session import Session

HEAD = "id,cloud,account,kind,instance_type,family,region,count,usd_per_hour,start,end,payment\n"
ROW = "{id},aws,1,reserved,p5.48xlarge,,us-east-1,1,,2026-01-01T00:00:00Z,2027-01-01T00:00:00Z,\n"


def opened(folder: Path) -> Session:
    return open_session(folder / "loadfactor.toml", folder / "store", date(2026, 10, 31))


def test_a_row_that_left_the_file_is_owned_no_more(tmp_path: Path) -> None:
    (tmp_path / "loadfactor.toml").write_text('[inputs]\ncommitments = "owned.csv"\n')
    owned = tmp_path / "owned.csv"
    owned.write_text(HEAD + ROW.format(id="ri-1") + ROW.format(id="ri-2"))
    assert sorted(opened(tmp_path).commitments()["id"]) == ["ri-1", "ri-2"]
    owned.write_text(HEAD + ROW.format(id="ri-2"))
    assert list(opened(tmp_path).commitments()["id"]) == ["ri-2"]


def test_every_fault_of_the_named_files_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "loadfactor.toml").write_text(
        '[inputs]\ncommitments = "owned.csv"\n[prices]\noverrides = "none.csv"\n'
    )
    (tmp_path / "owned.csv").write_text(HEAD + ROW.format(id="ri-1").replace(",1,,", ",many,,"))
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path)
    text = str(caught.value)
    assert "none.csv" in text
    assert "owned.csv" in text
    assert caught.value.exit_code == 2


def test_without_named_files_what_was_loaded_holds(tmp_path: Path) -> None:
    (tmp_path / "loadfactor.toml").write_text("")
    assert opened(tmp_path).commitments().empty


def test_a_file_of_waiting_gpus_outranks_what_was_loaded(tmp_path: Path) -> None:
    head = "hour_start,class,gpus\n"
    loaded, kept = tmp_path / "loaded.csv", tmp_path / "kept.csv"
    loaded.write_text(f"{head}2026-10-01T00:00:00Z,training,8\n")
    kept.write_text(f"{head}2026-10-01T00:00:00Z,training,16\n")
    (tmp_path / "loadfactor.toml").write_text("")
    run = opened(tmp_path)
    assert run.waiting().empty
    assert run.jobs().empty
    load([loaded], run.store)
    assert opened(tmp_path).waiting()["gpus"].tolist() == [8.0]
    (tmp_path / "loadfactor.toml").write_text('[inputs]\nwaiting = "kept.csv"\n')
    assert opened(tmp_path).waiting()["gpus"].tolist() == [16.0]


def test_fees_that_no_hour_bears_are_added_up_and_told() -> None:
    def left(amount: str, currency: str = "USD") -> Unspread:
        return Unspread("not_spread", "gcp", "p", Decimal(amount), currency, 1, "why")

    empty = pd.DataFrame()
    window = Window(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 2, tzinfo=UTC))
    fees = (left("55"), left("100"), left("9", "EUR"))
    found = Fleet(empty, (), pd.DatetimeIndex([]), fees)
    total, notes = unspread_fees(found, window)
    assert total == 155
    # A day of 155 is 155 x 730 / 24 = 4,714.58 a month.
    assert "4,715 USD a month" in notes[0]
    assert unspread_fees(replace(found, unspread=()), window) == (0, ())


def test_thresholds_of_the_fleet_hold_for_telemetry_that_no_class_describes() -> None:
    # The entry '' is what hours without a class are judged by: the fleet's words, not the built-in.
    settings = Settings(thresholds=FleetThresholds(busy_util_percent=0, memory_held_share=0.5))
    plain = thresholds_of(settings)[""]
    assert (plain.busy_util_percent, plain.memory_held_share) == (0, 0.5)
