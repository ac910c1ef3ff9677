"""The files of a back-test: what they mean, and every fault of all of them at once."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from data.errors import ConfigError
from planner.backtest.demand_file import read_demand, read_spot_availability
from planner.backtest.files import Files, Rules, backtest_files
from planner.backtest.prices_file import price_notes, read_prices
from tests.backtests import last_hour

HEAD = "hour,class,gpus,deferrable_gpus\n"
PRICES = (
    "on_demand = 3.9\nreserved = 2.6\nspot = 1.6\nspot_throughput = 0.9\n"
    "term_hours = 8760\ngpus_per_instance = 8\n"
)


@pytest.fixture
def write(tmp_path):
    def written(name: str, text: str | bytes):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def faults(read, path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 2
    return [str(one) for one in caught.value.problems]


def test_rows_may_stand_in_any_order_and_columns_too(write):
    made = read_demand(
        write("d.csv", "note,gpus,class,hour,deferrable_gpus\nx,4,b,1,1\nx,2,a,0,2\nx,3,a,1,0\n")
    )
    assert made.classes == ("a", "b")
    assert made.gpus[1].tolist() == [3.0, 4.0]
    assert made.deferrable[0, 0] == 2.0
    assert np.isnan(made.gpus[0, 1])
    assert made.start == 0


def test_hours_are_counted_from_the_first_of_the_file(write):
    made = read_demand(write("d.csv", HEAD + "101,a,2,0\n100,a,1,0\n"))
    assert (made.start, made.gpus[:, 0].tolist()) == (100, [1.0, 2.0])


def test_hours_may_be_times_with_or_without_a_zone_and_are_utc(write):
    text = (
        HEAD + "2026-11-30T01:00:00+02:00,a,1,0\n2026-11-30 00:00,a,2,0\n2026-11-30T01:00Z,a,3,0\n"
    )
    made = read_demand(write("d.csv", text))
    assert made.start == datetime(2026, 11, 29, 23, tzinfo=UTC)
    assert made.gpus[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_a_byte_order_mark_blank_lines_and_windows_line_ends_do_no_harm(write):
    made = read_demand(
        write("d.csv", ("\ufeff" + HEAD + "0,a,1,0\n\n1,a,2,0\n\n").replace("\n", "\r\n"))
    )
    assert made.gpus[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("cell", ["", "N/A", "NaN", "null"])
def test_an_empty_cell_is_no_reading_and_never_zero(write, cell):
    made = read_demand(write("d.csv", HEAD + f"0,a,4,0\n1,a,{cell},0\n2,a,4,{cell}\n"))
    assert np.isnan(made.gpus[1, 0])
    assert np.isnan(made.deferrable[1, 0])
    assert made.deferrable[2, 0] == 0.0
    assert [note.split(":")[0] for note in made.notes] == [
        "rows without deferrable_gpus, 1",
        "1 of 3 hours have no reading, the first hour 1",
    ]


def test_without_a_deferrable_column_all_demand_is_firm_and_that_is_said(write):
    made = read_demand(write("d.csv", "hour,class,gpus\n0,a,4\n"))
    assert made.deferrable.tolist() == [[0.0]]
    assert "deferrable_gpus" in made.notes[0]


def test_every_fault_of_a_demand_is_told_with_its_line(write):
    text = (
        HEAD
        + "0,a,1,0\n0,a,2,0\n\n1,a,-3,0\n2,a,x,0\n3,a,1,2\n4,,1,0\nzz,a,1,0\n5,a,inf,0\n1.5,a,1,0\n"
    )
    told = faults(read_demand, write("d.csv", text))
    lines = [(one.split(":")[0], one.split(": ")[1]) for one in told]
    assert lines == [
        ("line 3", "repeats an earlier row"),
        ("line 5", "below 0"),
        ("line 6", "no number"),
        ("line 7", "more may wait than there is"),
        ("line 8", "no class"),
        ("line 9", "no whole number, as most rows have"),
        ("line 10", "no number"),
        ("line 11", "no whole number, as most rows have"),
    ]


def test_many_faults_of_one_kind_are_counted(write):
    rows = "".join(f"{hour},a,-1,0\n" for hour in range(50))
    told = faults(read_demand, write("d.csv", HEAD + rows))
    assert told[0] == "line 2: below 0: gpus '-1'"
    assert [one.split(":")[0] for one in told[:20]] == [f"line {line}" for line in range(2, 22)]
    assert told[20:] == ["lines 22 to 51: below 0: and 30 more"]
    mixed = HEAD + rows + "50,a,x,0\n"
    assert faults(read_demand, write("e.csv", mixed))[-1].startswith("lines 22 to 51")


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        (("0.0", "1.5", "2"), "line 3: no whole number, as most rows have: hour '1.5' (write"),
        (("0.5", "1.5"), "line 2: no whole number, nor a UTC time: hour '0.5' (write a whole"),
        (("2026-11-30T00:00Z", "2026-11-30T01:00Z", "2"), "line 4: no UTC time, as most rows hav"),
        (("2026-11-30T00:00Z", "2026-11-30T01:00Z", "2027"), "line 4: no UTC time, as most rows"),
        (("1700028800", "1700032400"), "line 2: outside -999,999,999 to 999,999,999: hour '17000"),
        (("7", "1000000000"), "line 3: outside -999,999,999 to 999,999,999: hour '1000000000' (c"),
    ],
)
def test_an_hour_of_the_wrong_form_is_told_with_what_would_be_right(write, hours, told):
    rows = "".join(f"{hour},a,1,0\n" for hour in hours)
    assert faults(read_demand, write("d.csv", HEAD + rows))[0].startswith(told)


def test_whole_hours_may_be_written_as_a_spreadsheet_writes_them(write):
    made = read_demand(write("d.csv", HEAD + "4.0,a,1,0\n5.0,a,2,0\n"))
    assert (made.start, made.gpus[:, 0].tolist()) == (4, [1.0, 2.0])


def test_a_file_that_is_not_utf_8_is_told_with_its_line_and_what_to_do(write):
    latin = (HEAD + "0,a,1,0\n1,café,1,0\n").encode("latin-1")
    assert faults(read_demand, write("d.csv", latin)) == [
        "line 3: is not UTF-8, perhaps Latin-1 or UTF-16 (save the file as UTF-8)"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column hour is missing"), (HEAD, "holds no rows"),
        ("hour;class;gpus\n0;a;1\n", "column class is missing"),
        ("hour,class,gpus,gpus\n0,a,1,1\n", "column gpus is there twice"),
        (HEAD + "0,a,1\n", "has 3 cells, the header has 4"),
        (HEAD + "0,a,1,0,9\n", "has 5 cells"),
        (HEAD + '0,"a,1,0\n', "end of data"),
        (b"\xff\xfe" + HEAD.encode("utf-16-le"), "is not UTF-8"),
        (HEAD + "0,a,1,0\n900000,a,1,0\n", "hours apart"),
        (HEAD + "2026-11-30T00:30:00Z,a,1,0\n", "not on the hour"),
        (HEAD + "yesterday,a,1,0\n", "no hour"),
        (HEAD + "0,a,1e12,0\n", "above"),
    ],
)  # fmt: skip
def test_what_is_no_demand_is_refused(write, text, said):
    assert any(said in one for one in faults(read_demand, write("d.csv", text)))


def test_a_file_that_is_not_there(tmp_path):
    for read in (read_demand, read_prices, read_spot_availability):
        assert faults(read, tmp_path / "no")


def test_prices_as_the_contract_names_them(write):
    found = read_prices(write("p.toml", PRICES))
    assert (found.on_demand, found.reserved, found.spot) == (3.9, 2.6, 1.6)
    assert (found.term_hours, found.gpus_per_instance) == (8760, 8)
    assert found.spot_useful == pytest.approx(1.7777777)
    plain = read_prices(write("q.toml", "on_demand = 3\nreserved = 2\nterm_hours = 1\n"))
    assert (plain.spot, plain.spot_useful, plain.gpus_per_instance) == (None, np.inf, 1)
    assert price_notes(found) == price_notes(plain) == []


def test_every_fault_of_the_prices_is_told(write):
    told = faults(
        read_prices,
        write("p.toml", 'on_demand = -1\nreservd = 2\nspot = "x"\nspot_throughput = 2\n'),
    )
    assert [one.split(":")[0] for one in told] == [
        "on_demand", "reservd", "reserved", "spot", "spot_throughput", "spot_throughput",
        "term_hours",
    ]  # fmt: skip
    assert "perhaps reserved was meant" in told[1]
    assert faults(read_prices, write("q.toml", "on_demand = = 3\n"))
    assert faults(read_prices, write("r.toml", b"on_demand = 3 # \xff\n"))
    whole = faults(
        read_prices, write("s.toml", PRICES.replace("8760", "1.5").replace("8\n", "0\n"))
    )
    assert [one.split(":")[0] for one in whole] == ["gpus_per_instance", "term_hours"]


def test_odd_prices_are_told(write):
    odd = PRICES.replace("2.6", "3.9").replace("1.6", "3.6")
    notes = price_notes(read_prices(write("p.toml", odd)))
    assert [note.split(":")[0] for note in notes] == [
        "reserved is no cheaper than on demand",
        "a useful GPU-hour on spot, 4 USD, is no cheaper than one on demand",
    ]


def test_spot_availability_is_read_in_the_order_of_its_hours(write):
    path = write("s.csv", "hour,available\n6,0.5\n5,1\n7,0\n")
    assert read_spot_availability(path).tolist() == [1.0, 0.5, 0.0]
    told = faults(read_spot_availability, write("t.csv", "hour,available\n0,1.5\n0,\n3,1\n"))
    assert [one.split(": ")[1] for one in told] == [
        "above 1",
        "no reading",
        "repeats an earlier row",
    ]
    (gap,) = faults(read_spot_availability, write("u.csv", "hour,available\n0,1\n3,1\n"))
    assert "2 hours missing between" in gap


def test_the_faults_of_all_files_come_at_once_each_under_its_file(write):
    files = Files(
        write("d.csv", HEAD + "0,a,-1,0\n"), write("p.toml", "x = 1\n"), write("s.csv", "hour\n")
    )
    with pytest.raises(ConfigError) as caught:
        backtest_files(files, Rules(), last_hour)
    told = {one.where.rsplit("/", 1)[1].split(":")[0] for one in caught.value.problems}
    assert told == {"d.csv", "p.toml", "s.csv"}


def test_the_rules_reach_the_run_and_spot_availability_is_repeated(write):
    """One waiting GPU-hour an hour; spot in every second hour takes it there, 2 hours at most.

    Steps every week: 400 hours, half of them history, so steps at 200 and 368.
    """
    rows = "".join(f"{hour},a,1,1\n" for hour in range(400))
    files = Files(
        write("d.csv", HEAD + rows),
        write("p.toml", PRICES.replace("0.9", "1.0")),
        write("s.csv", "hour,available\n0,0\n1,1\n"),
    )
    seen = []

    def adviser(history, given):
        seen.append((history.next_hour, given.max_delay_hours, history.spot_available[:4].tolist()))
        return last_hour(history, given)

    found = backtest_files(files, Rules(0.5, 1, 2), adviser)
    assert seen == [(200, 2, [0, 1, 0, 1]), (368, 2, [0, 1, 0, 1])]
    assert found.named("all_on_demand").costs.usd == pytest.approx(200 * 1.6)
    late = backtest_files(files, Rules(0.5, 1, 0), adviser)
    assert late.named("all_on_demand").costs.usd == pytest.approx(100 * 1.6 + 100 * 3.9)


def test_availability_without_a_spot_price_has_no_effect_and_that_is_said(write):
    files = Files(
        write("d.csv", HEAD + "0,a,1,1\n1,a,1,1\n"),
        write("p.toml", "on_demand = 3\nreserved = 2\nterm_hours = 9\n"),
        write("s.csv", "hour,available\n0,1\n"),
    )
    assert "has no effect" in backtest_files(files, Rules(), last_hour).warnings[0]


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ("on_demand = 3\nreserved = 2\nterm_hours = 9\n", ["no spot price: nothing runs on spot"]),
        (PRICES.replace("spot_throughput = 0.9\n", ""), ["spot without spot_throughput"]),
        (PRICES, []),
    ],
)
def test_what_the_prices_leave_unsaid_is_told(write, prices, said):
    def told(gpus_that_wait):
        rows = f"0,a,1,{gpus_that_wait}\n1,a,1,{gpus_that_wait}\n"
        files = Files(write("d.csv", HEAD + rows), write("p.toml", prices))
        return backtest_files(files, Rules(), last_hour).warnings

    found = told(1)
    assert len(found) == len(said)
    assert all(part in text for part, text in zip(said, found, strict=True))
    # Where nothing may run on spot, that there is none is no news.
    assert not [text for text in told(0) if "no spot price" in text]
