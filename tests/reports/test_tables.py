"""CSV files: the published columns, formula cells made harmless, and an exact way back."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import DataError
from data.frames import conform, empty, records
from data.schema import QUALITY, RECOMMENDATIONS
from data.schema.columns import BOOL, DATE, TIME, F, M, T, Table, may, need
from reports.tables import FILES, csv_text, read_csv, read_tables
from tests.reports.night import tables

# The header lines that users' scripts rely on, written out and never derived.
HEADERS = {
    "recommendations.csv": (
        "rank,id,kind,cloud,account,region,resource,workload_class,action,current,proposed,gpus,"
        "gpu_hours_per_month,currency,cost_per_month_now,cost_per_month_after,saving_per_month,"
        "cash_saving_per_month,term_hours,payment,upfront,total_commitment,capacity_assured,team,"
        "owner,confidence,break_even_share,expected_share,binding_constraint,risk,why,decision,"
        "data_as_of,valid_until"
    ),
    "limits.csv": (
        "pool,kind,unit,cloud,account,region,name,min_now,desired_now,max_now,min_proposed,"
        "desired_proposed,max_proposed,running,schedule,why"
    ),
    "commitments.csv": (
        "id,cloud,account,kind,instance_type,region,count,usd_per_hour,payment,upfront,"
        "total_commitment,start,end,used_share,unused_cost_per_month,break_even_share,action,why"
    ),
    "idle.csv": (
        "cloud,account,region,instance_id,gpu_model,workload_class,team,state,reason,gpu_hours,"
        "cost,currency,stoppable_cost,committed_until,since,action"
    ),
    "quality.csv": "check,scope,severity,count,amount,currency,detail",
}

MIXED = Table(
    "mixed",
    "One column of each kind.",
    (
        need("name", T, "text"),
        may("cost", M, "money"),
        may("share", F, "number"),
        may("flag", BOOL, "truth"),
        may("at", TIME, "moment"),
        may("day", DATE, "day"),
    ),
)


def mixed(**columns: object) -> pd.DataFrame:
    return conform(pd.DataFrame(columns), MIXED)


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_columns_stand_in_the_published_order(name):
    assert csv_text(empty(FILES[name]), FILES[name]) == HEADERS[name] + "\n"


def test_every_file_has_a_published_header():
    assert set(FILES) == set(HEADERS)


def test_values_are_written_plainly():
    frame = mixed(
        name=["a,b", 'say "x"', "two\nlines"],
        cost=[Decimal("1E-7"), Decimal("30.00"), None],
        share=[0.62, 1e-7, None],
        flag=[True, False, None],
        at=["2026-11-30T13:00:00Z", None, None],
        day=["2026-11-30", None, None],
    )
    assert csv_text(frame, MIXED) == (
        "name,cost,share,flag,at,day\n"
        '"a,b",0.0000001,0.62,true,2026-11-30T13:00:00Z,2026-11-30\n'
        '"say ""x""",30,0.0000001,false,,\n'
        '"two\nlines",,,,,\n'
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_text_that_a_spreadsheet_would_run_is_neutralised(start):
    frame = mixed(name=[f"{start}cmd|' /C calc'!A0"])
    (_, row) = csv.reader(io.StringIO(csv_text(frame, MIXED), newline=""))
    assert row[0] == f"'{start}cmd|' /C calc'!A0"


def test_a_negative_number_is_no_formula():
    frame = mixed(name=["refund"], cost=[Decimal("-12.5")], share=[-0.5])
    assert csv_text(frame, MIXED).splitlines()[1] == "refund,-12.5,-0.5,,,"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)))
def test_every_text_comes_back_as_it_was(tmp_path_factory, texts):
    frame = mixed(name=texts) if texts else empty(MIXED)
    path = tmp_path_factory.mktemp("csv") / "mixed.csv"
    path.write_bytes(csv_text(frame, MIXED).encode())
    assert read_csv(path, MIXED)["name"].tolist() == texts


@given(
    st.lists(
        st.tuples(
            st.decimals(-(10**11), 10**11, places=26) | st.none(),
            st.floats(allow_nan=False, allow_infinity=False) | st.none(),
            st.booleans() | st.none(),
        ),
        min_size=1,
    )
)
def test_every_number_comes_back_as_it_was(tmp_path_factory, cells):
    costs, shares, flags = (list(column) for column in zip(*cells, strict=True))
    frame = mixed(name=["x"] * len(cells), cost=costs, share=shares, flag=flags)
    path = tmp_path_factory.mktemp("csv") / "mixed.csv"
    path.write_bytes(csv_text(frame, MIXED).encode())
    back = records(read_csv(path, MIXED))
    assert [(row["cost"], row["share"], row["flag"]) for row in back] == cells


def test_the_tables_of_a_night_come_back_from_their_folder(tmp_path):
    night = tables()
    frames = (night.recommendations, night.commitments, night.limits, night.idle, night.quality)
    for (name, table), frame in zip(FILES.items(), frames, strict=True):
        (tmp_path / name).write_bytes(csv_text(frame, table).encode())
    back = read_tables(tmp_path)
    pd.testing.assert_frame_equal(back.recommendations, night.recommendations)
    pd.testing.assert_frame_equal(back.commitments, night.commitments)
    pd.testing.assert_frame_equal(back.limits, night.limits)
    pd.testing.assert_frame_equal(back.idle, night.idle)
    pd.testing.assert_frame_equal(back.quality, night.quality)


def test_an_empty_table_comes_back_empty(tmp_path):
    path = tmp_path / "recommendations.csv"
    path.write_text(csv_text(empty(RECOMMENDATIONS), RECOMMENDATIONS))
    assert read_csv(path, RECOMMENDATIONS).empty


def test_a_file_with_another_header_is_refused(tmp_path):
    path = tmp_path / "quality.csv"
    path.write_text("check,scope\n")
    with pytest.raises(DataError, match=r"expected check,scope,severity.*found check,scope"):
        read_csv(path, QUALITY)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(DataError, match=r"quality\.csv cannot be read"):
        read_csv(tmp_path / "quality.csv", QUALITY)


def test_every_short_row_is_named(tmp_path):
    path = tmp_path / "quality.csv"
    path.write_text(HEADERS["quality.csv"] + "\na,b\nc,d,info,,,,fine\ne\n")
    with pytest.raises(DataError) as caught:
        read_csv(path, QUALITY)
    assert [problem.where.rsplit(" ", 1)[1] for problem in caught.value.problems] == ["1", "3"]
