"""Tables that the configuration names hold as they stand today, whatever was loaded before."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import ibis
import pytest

from data import engines
from data.errors import ConfigError
from data.hours import Window
from planner.nightly import open_session
from planner.session import unspread_fees
from planner.settings import Settings
from planner.settings import Thresholds as FleetThresholds
from planner.states import thresholds_of
from tests.staged import arrow_table

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


def fee(cost: str, text: str, **more: Any) -> dict[str, object]:
    hour = datetime(2026, 10, 1, 5, tzinfo=UTC)
    return {
        "source": "gcp", "charge_type": "fee", "purchase_option": "reserved", "currency": "USD",
        "sku_description": text, "effective_cost": Decimal(cost), "period_start": hour,
        "period_end": hour.replace(hour=6), **more,
    }  # fmt: skip


def test_fees_that_no_hour_bears_are_added_up_and_told() -> None:
    gpu = "Commitment v1: Nvidia H100 80GB GPU running in Iowa for 1 Year"
    rows = [
        fee("55", gpu),
        fee("100", "CapacityBlockFee", source="aws", purchase_option="capacity_block"),
        fee("7", "Commitment v1: N1 Cpu in Iowa for 1 Year"),
        fee("9", gpu, charge_type="usage"),
        fee("11", gpu, period_start=datetime(2026, 9, 1, tzinfo=UTC),
            period_end=datetime(2026, 9, 1, 1, tzinfo=UTC)),
        fee("13", "RIFee p5.48xlarge", source="aws"),
    ]  # fmt: skip
    connection = engines.connect()
    table = connection.create_table("bill", ibis.memtable(arrow_table(rows)))
    session = SimpleNamespace(store=SimpleNamespace(table=lambda _name: table))
    window = Window(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 2, tzinfo=UTC))
    # 55 of the GPU commitment and 100 of the block: an RI's fee is spread by its own columns.
    total, notes = unspread_fees(cast("Session", session), window)
    assert total == 155
    # A day of 155 is 155 x 730 / 24 = 4,714.58 a month.
    assert "4,715 USD a month" in notes[0]
    connection.disconnect()


def test_thresholds_of_the_fleet_hold_for_telemetry_that_no_class_describes() -> None:
    # The entry '' is what hours without a class are judged by: the fleet's words, not the built-in.
    settings = Settings(thresholds=FleetThresholds(busy_util_percent=0, memory_held_share=0.5))
    plain = thresholds_of(settings)[""]
    assert (plain.busy_util_percent, plain.memory_held_share) == (0, 0.5)
