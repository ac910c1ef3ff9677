"""Reading files as text: CSV in all its accidents, gzip, zip, JSON, Parquet."""

from __future__ import annotations

import gzip
import json
import zipfile
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.engines import connect
from data.errors import DataError
from providers.files.heads import head_of
from providers.files.raw import read_raw

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def connection() -> Any:
    backend = connect(threads=2)
    yield backend
    backend.disconnect()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def rows(connection: Any, work: Path, *files: Path, **more: Any) -> list[tuple[Any, ...]]:
    table, columns = read_raw(connection, files, work, **more)
    found = table.order_by("source_row_no").to_pyarrow().to_pylist()
    assert [row["source_row_no"] for row in found] == list(range(1, len(found) + 1))
    return [tuple(row[name] for name in columns) for row in found]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n", [("1", "2")]),
        (b"a,b\n1,2", [("1", "2")]),
        (b"a,b\r\n1,2\r\n", [("1", "2")]),
        (b"a,b\r\n1,2\n3,4\r\n", [("1", "2"), ("3", "4")]),
        (b"a,b\n\n1,2\n\n\n3,4\n\n", [("1", "2"), ("3", "4")]),
        (b"\n\na,b\n1,2\n", [("1", "2")]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
        (b'\xef\xbb\xbfa,b\n\xef\xbb\xbf"1,1",2\n', [("1,1", "2")]),
        (b'a,b\n"x\ny","say ""hi"""\n', [("x\ny", 'say "hi"')]),
        (b'a,"b"\n1,"2"\n', [("1", "2")]),
        (b"a;b\n1,5;2\n", [("1,5", "2")]),
        (b"a\tb\n1\t2\n", [("1", "2")]),
        (b"a,b\n007,0.10\n", [("007", "0.10")]),
        (b"a,b\n1E-7,NaN\n", [("1E-7", "NaN")]),
        ("a,b\n1,\u00e9\n".encode("utf-16"), [("1", "\u00e9")]),
    ],
)  # fmt: skip
def test_csv_is_read_whatever_its_line_ends_marks_and_quotes(
    connection: Any, tmp_path: Path, content: bytes, expected: list[tuple[str, ...]]
) -> None:
    assert rows(connection, tmp_path, write(tmp_path / "f.csv", content)) == expected


@pytest.mark.parametrize("word", ["", '""', "NULL", "null", "None"])
def test_the_words_for_missing_are_missing(connection: Any, tmp_path: Path, word: str) -> None:
    path = write(tmp_path / "f.csv", f"a,b\n{word},x\n".encode())
    assert rows(connection, tmp_path, path) == [(None, "x")]


def test_names_that_differ_by_case_alone_are_kept_apart(connection: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", b"tags,Tags,source_row_no\n1,2,9\n")
    _, columns = read_raw(connection, [path], tmp_path)
    assert columns == ("tags", "Tags #2", "source_row_no #2")
    assert rows(connection, tmp_path, path) == [("1", "2", "9")]


def test_a_header_that_lost_a_comma_is_split_where_the_rows_have_a_cell_more(
    connection: Any, tmp_path: Path
) -> None:
    header = b"identity/LineItemId,pricing/OfferingClasspricing/PurchaseOption\n"
    path = write(tmp_path / "f.csv", header + b"i,standard,All Upfront\n")
    _, columns = read_raw(connection, [path], tmp_path)
    assert columns[1:] == ("pricing/OfferingClass", "pricing/PurchaseOption")
    path = write(tmp_path / "g.csv", header + b"i,standard\n")
    _, columns = read_raw(connection, [path], tmp_path)
    assert columns[1:] == ("pricing/OfferingClasspricing/PurchaseOption",)


def test_gzip_and_zip_are_unpacked_whatever_the_name_says(connection: Any, tmp_path: Path) -> None:
    packed = write(tmp_path / "f.csv", gzip.compress(b"a,b\n1,2\n"))
    assert rows(connection, tmp_path, packed) == [("1", "2")]
    archive = tmp_path / "g.bin"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x/1.csv", "a,b\n1,2\n")
        file.writestr("x/2.csv", "a,b\n3,4\n")
    assert rows(connection, tmp_path, archive) == [("1", "2"), ("3", "4")]


def test_parts_are_read_in_the_order_given_and_may_differ_in_columns(
    connection: Any, tmp_path: Path
) -> None:
    one = write(tmp_path / "1.csv", b"a,b\n1,2\n")
    two = write(tmp_path / "2.csv", b"c,A\n3,4\n")
    table, columns = read_raw(connection, [one, two], tmp_path)
    assert columns == ("a", "b", "c")
    assert rows(connection, tmp_path, one, two) == [("1", "2", None), ("4", None, "3")]
    assert rows(connection, tmp_path, two, one) == [("3", "4", None), (None, "1", "2")]
    assert table.count().to_pyarrow().as_py() == 2


def test_rows_keep_their_order_over_many_buffers(connection: Any, tmp_path: Path) -> None:
    path = write(
        tmp_path / "f.csv",
        b"n,pad\n" + b"".join(b"%d,%s\n" % (n, b"x" * 90) for n in range(400_000)),
    )
    table, _ = read_raw(connection, [path], tmp_path)
    wrong = table.filter(table.n.cast("int64") + 1 != table.source_row_no).count()
    assert wrong.to_pyarrow().as_py() == 0


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": "1", "n": 2.50}\n{"a": null, "b": [1]}\n',
        b'[{"a": "1", "n": 2.50}, {"a": null, "b": [1]}]',
        b'  {\n "a": "1",\n "n": 2.50}\n {"a": null,\n "b": [1]\n}',
    ],
)
def test_json_lines_arrays_and_objects_in_a_row_are_one(
    connection: Any, tmp_path: Path, content: bytes
) -> None:
    expected = [("1", None, "2.50"), (None, "[1]", None)]  # columns a, b, n
    assert rows(connection, tmp_path, write(tmp_path / "f.json", content)) == expected
    packed = write(tmp_path / "f.json.gz", gzip.compress(content))
    assert rows(connection, tmp_path, packed) == expected


def test_numbers_of_json_keep_every_digit_also_inside_nested_values(
    connection: Any, tmp_path: Path
) -> None:
    digits = "0.12345678901234567890123456"
    text = f'{{"cost": {digits}, "u": {{"amount": -5e-06, "t": "a: 5, b"}}}}\n'
    ((cost, nested),) = rows(connection, tmp_path, write(tmp_path / "f.json", text.encode()))
    assert cost == digits
    assert json.loads(nested) == {"amount": "-5e-06", "t": "a: 5, b"}


def test_a_text_that_holds_json_is_left_as_it_is(connection: Any, tmp_path: Path) -> None:
    inner = '{"a": 5, "b": [1]}'
    path = write(tmp_path / "f.json", json.dumps({"tags": inner}).encode())
    assert rows(connection, tmp_path, path) == [(inner,)]


def test_parquet_types_become_their_shortest_text(connection: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    credit = pa.struct([("name", pa.string()), ("amount", pa.decimal128(20, 9))])
    columns = {
        "f": pa.array([0.1], pa.float64()),
        "d": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "m": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
        "l": pa.array([[{"name": "x", "amount": Decimal("-0.000005")}]], pa.list_(credit)),
        "s": pa.array([""], pa.string()),
    }
    pq.write_table(pa.table(columns), path)
    ((f, d, m, items, s),) = rows(connection, tmp_path, path)
    assert (f, d, s) == ("0.1", "1.50", None)
    assert json.loads(m) == {"k": "v"}
    assert json.loads(items) == [{"name": "x", "amount": "-0.000005000"}]


@pytest.mark.parametrize("content", [b"", b"  \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(connection: Any, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match="empty"):
        read_raw(connection, [write(tmp_path / "f.csv", content)], tmp_path)


def test_a_file_with_a_header_alone_has_no_rows(connection: Any, tmp_path: Path) -> None:
    assert rows(connection, tmp_path, write(tmp_path / "f.csv", b"a,b\n")) == []


def test_a_truncated_gzip_is_an_error_at_the_latest_when_its_rows_are_read(
    connection: Any, tmp_path: Path
) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 50_000)
    with pytest.raises((DataError, duckdb.Error)):
        rows(connection, tmp_path, write(tmp_path / "f.csv.gz", whole[:-9]))
    with pytest.raises(DataError, match="truncated"):
        rows(connection, tmp_path, write(tmp_path / "g.csv.gz", whole[: len(whole) // 2]))


def test_rows_that_do_not_fit_the_header_are_named_by_line_when_read_cell_by_cell(
    connection: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "f.csv", b"a,b\n1,2\n3\n4,5,6\n")
    with pytest.raises(duckdb.InvalidInputException):
        rows(connection, tmp_path, path)
    with pytest.raises(DataError) as caught:
        rows(connection, tmp_path, path, clean=True)
    assert [problem.where for problem in caught.value.problems] == ["f.csv line 3", "f.csv line 4"]


def test_a_broken_zip_and_text_that_is_no_utf8_are_errors(connection: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-8"):
        read_raw(connection, [write(tmp_path / "f.csv", b"a\xff,b\n1,2\n")], tmp_path)
    archive = tmp_path / "g.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("1.csv", "a,b\n" + "1,2\n" * 5000)
    content = bytearray(archive.read_bytes())
    content[40:60] = b"\x00" * 20
    with pytest.raises(DataError, match="broken zip"):
        read_raw(connection, [write(archive, bytes(content))], tmp_path)


def test_names_with_patterns_and_colons_are_taken_literally(
    connection: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a[1]*:2020.csv", b"a,b\n1,2\n")
    write(tmp_path / "a1x:2020.csv", b"a,b\n9,9\n")
    assert rows(connection, tmp_path, path) == [("1", "2")]
    assert head_of(connection, path, tmp_path).columns == ("a", "b")
