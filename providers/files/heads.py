"""What a file is before its rows are read: its kind, compression, delimiter and column names."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from data.engines import path_list, quoted, run
from data.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BOM = "\ufeff"
_BOM_BYTES = BOM.encode()
_PEEK = 1 << 20
_LONGEST_CELL = 64 * 1024 * 1024
# Two headers of AWS that lost the comma between them (trap 22 of the billing facts).
_FUSED = re.compile(
    r"(?<=[A-Za-z])(?=(?:identity|bill|lineItem|product|pricing|reservation|savingsPlan"
    r"|resourceTags|costCategory|discount)/)"
)


@dataclass(frozen=True, slots=True)
class Head:
    """A readable file: where it is, how it is written, and its columns under unique names.

    `spelled` are the names as the file has them. `skip` counts blank lines before a CSV header;
    `form` is the form of JSON in DuckDB's words, `types` are those of a Parquet file's columns.
    """

    path: Path
    kind: Literal["csv", "parquet", "json"]
    columns: tuple[str, ...]
    spelled: tuple[str, ...]
    compression: str = "none"
    delimiter: str = ","
    skip: int = 0
    form: str = "unstructured"
    types: tuple[str, ...] = ()

    @property
    def alike(self) -> tuple[object, ...]:
        """What two files must share to be read by one reader."""
        # One reader would cast the columns of all Parquet files to the types of the first.
        form = (self.delimiter, self.skip, self.form, self.types)
        return (self.kind, self.spelled, self.compression, *form)


def read_parts(path: Path, work: Path) -> list[Path]:
    """The readable files of a path: itself, or the members of a zip, unpacked into `work`."""
    if path.stat().st_size == 0:
        raise DataError(f"{path.name} is empty: export it again")
    if not zipfile.is_zipfile(path) or path.suffix.lower() == ".parquet":
        return [path]
    parts = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            for number, member in enumerate(sorted(members, key=lambda m: m.filename), 1):
                target = work / f"{_token(path)}-{number}-{member.filename.rsplit('/', 1)[-1]}"
                with archive.open(member) as packed, target.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked, _PEEK)
                parts.append(target)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise DataError(f"{path.name} is a broken zip: {error}") from error
    if not parts:
        raise DataError(f"{path.name} is a zip without files")
    return parts


def _token(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:8]


def head_of(connection: Any, path: Path, work: Path, *, clean: bool = False) -> Head:
    """The head of a file. Raises DataError if it is empty, truncated, or has no header.

    A CSV file with a byte-order mark inside, or any with `clean`, is rewritten into `work`.
    """
    with path.open("rb") as file:
        magic = file.read(4)
    if not magic:
        raise DataError(f"{path.name} is empty: export it again")
    if magic == b"PAR1":
        rows = run(connection, f"DESCRIBE SELECT * FROM read_parquet({path_list([path])})")
        names = [row[0] for row in rows]
        types = tuple(str(row[1]) for row in rows)
        return Head(path, "parquet", unique(names), tuple(names), types=types)
    compression = "gzip" if magic[:2] == b"\x1f\x8b" else "none"
    start = _start_of(path)
    text = start.lstrip(_BOM_BYTES).lstrip()
    if not text:
        raise DataError(f"{path.name} is empty: it holds nothing but blanks")
    if text[:1] in (b"{", b"["):
        return _json_head(path, compression, text, connection)
    return _csv_head(path, compression, start, work if clean or _needs_cleaning(start) else None)


def _start_of(path: Path) -> bytes:
    try:
        with opened(path) as file:
            return file.read(_PEEK)
    except (EOFError, OSError, zlib.error) as error:
        told = f"{path.name} is a truncated or broken gzip file: {error}; fetch it again"
        raise DataError(told) from error


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, gzip unpacked on the way, whatever its name says."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


def _needs_cleaning(start: bytes) -> bool:
    """Whether strict reading would fail: UTF-16, marks inside, CR LF beside LF between rows."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or start.rfind(_BOM_BYTES) > 0:
        return True
    bare = re.sub(rb'"[^"]*"?', b"", start)
    return 0 < bare.count(b"\r\n") < bare.count(b"\n")


def _csv_head(path: Path, compression: str, start: bytes, work: Path | None) -> Head:
    if work is not None:
        path, compression = _cleaned(path, work), "none"
    with opened(path) as binary:
        lines = io.TextIOWrapper(binary, "utf-8-sig", newline="")
        try:
            skip, header, first, delimiter = _first_records(lines)
        except (UnicodeDecodeError, csv.Error, EOFError, zlib.error) as error:
            raise DataError(f"{path.name} is not UTF-8 CSV: {error}") from error
    if len(first) > len(header):
        header = _unfused(header, len(first))
    return Head(path, "csv", unique(header), tuple(header), compression, delimiter, skip)


def _first_records(lines: io.TextIOWrapper) -> tuple[int, list[str], list[str], str]:
    csv.field_size_limit(_LONGEST_CELL)
    skip, line = 0, lines.readline()
    while line and not line.strip():
        skip, line = skip + 1, lines.readline()
    delimiter = delimiter_of(line)

    def rest() -> Iterator[str]:
        yield line
        yield from lines

    records = csv.reader(rest(), delimiter=delimiter)
    header = next(records)
    first = next((record for record in records if record), [])
    return skip, header, first, delimiter


def delimiter_of(line: str) -> str:
    """The delimiter of a header line: the one that stands most often outside quotes.

    >>> delimiter_of('a;"b,c,d";e')
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", line)
    return max(",;\t|", key=bare.count)


def _unfused(header: list[str], cells: int) -> list[str]:
    names = [part for name in header for part in _FUSED.split(name)]
    return names if len(names) == cells else header


def unique(names: list[str]) -> tuple[str, ...]:
    """The names with blanks and marks stripped; one that differs by case alone gets ` #2`.

    >>> unique(["Tags", "tags", "source_row_no"])
    ('Tags', 'tags #2', 'source_row_no #2')
    """
    seen = {"source_row_no": 1}
    result = []
    for place, name in enumerate(names, 1):
        plain = name.replace(BOM, "").strip() or f"column {place}"
        count = seen[plain.lower()] = seen.get(plain.lower(), 0) + 1
        result.append(plain if count == 1 else f"{plain} #{count}")
    return tuple(result)


def _cleaned(path: Path, work: Path) -> Path:
    """A strict copy of the CSV: UTF-8, no marks, no blank lines, one cell per column in a row."""
    target = work / f"{_token(path)}-clean.csv"
    csv.field_size_limit(_LONGEST_CELL)
    try:
        with opened(path) as binary:
            encoding = "utf-16" if binary.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        with (
            io.TextIOWrapper(opened(path), encoding, newline="") as lines,
            target.open("w", encoding="utf-8", newline="") as copy,
        ):
            _rewrite(path, lines, copy)
    except (UnicodeDecodeError, csv.Error, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path.name} is not CSV that can be read: {error}") from error
    return target


def _rewrite(path: Path, lines: io.TextIOWrapper, copy: IO[str]) -> None:
    plain = (line.replace(BOM, "") for line in lines)
    first = next((line for line in plain if line.strip()), "")
    delimiter = delimiter_of(first)

    def rest() -> Iterator[str]:
        yield first
        yield from plain

    records = csv.reader(rest(), delimiter=delimiter)
    writer = csv.writer(copy, lineterminator="\n", delimiter=delimiter, quoting=csv.QUOTE_MINIMAL)
    width, problems = 0, []
    for record in records:
        if not record:
            continue
        if width == 0:
            header = record
            width = len(header)
            writer.writerow(header)
            continue
        if len(record) != width and len(_unfused(header, len(record))) != len(record):
            what = f"{len(record)} cells where the header names {width}"
            problems.append(Problem(f"{path.name} line {records.line_num}", what))
        writer.writerow(record)
    if problems:
        raise DataError(f"{path.name} has rows that do not fit its header", problems[:20])


def _json_head(path: Path, compression: str, text: bytes, connection: Any) -> Head:
    form = "array" if text[:1] == b"[" else "unstructured"
    if form == "unstructured" and _is_object(text.split(b"\n", 1)[0]):
        form = "newline_delimited"
    source = json_objects([path], form, compression)
    rows = run(
        connection,
        f"SELECT key FROM (SELECT unnest(json_keys(json)) AS key, "
        f"unnest(range(len(json_keys(json)))) AS place FROM {source}) "
        f"GROUP BY key ORDER BY min(place), key",
    )
    names = [row[0] for row in rows]
    return Head(path, "json", unique(names), tuple(names), compression, form=form)


def json_objects(paths: Iterable[Path], form: str, compression: str) -> str:
    """The SQL table of the JSON objects of the files, one text a row, in its column `json`."""
    return (
        f"read_json_objects({path_list(paths)}, format = {quoted(form)}, "
        f"compression = {quoted(compression)})"
    )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
