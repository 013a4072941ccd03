"""Typed rows as CSV and Parquet, and one form of error: where, which field, what was expected, what was found.

A row is a msgspec struct: its fields are the columns, their types and bounds (`msgspec.Meta`) say what a cell may be.
`Meta(title=...)` words what is expected better than the type does. pyarrow is imported where it is used.
"""

from __future__ import annotations

import csv
import functools
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

import msgspec
from msgspec import inspect

from tarazu.errors import BadInput, Unavailable
from tarazu.malformed import MALFORMED

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
Keys = tuple[str | int, ...]

LONGEST_CELL = 1 << 17
"""Characters."""
BATCH = 50_000
"""Rows of a row group."""


class Csv:
    """Rows of cells of a stream opened with `newline=""`, below a header.

    columns: what the header has to be; none: whatever it is, each column once. any_order: further columns and blank
    lines are left alone, too. notes: so are lines that begin with #, and spaces around cells.
    """

    def __init__(
        self,
        stream: TextIO,
        where: str,
        columns: Sequence[str] = (),
        *,
        error: type[BadInput] = BadInput,
        first_line: int = 1,
        any_order: bool = False,
        notes: bool = False,
        longest_cell: int = LONGEST_CELL,
    ) -> None:
        self.columns = tuple(columns)
        self._reader = csv.reader(stream, strict=True)
        self._where, self._error, self._first_line = where, error, first_line
        self._any_order, self._notes, self._longest = any_order, notes, longest_cell

    @property
    def place(self) -> str:
        """File and line of the row that was read last."""
        return f"{self._where}:{self._first_line + max(self._reader.line_num, 1) - 1}"

    def __iter__(self) -> Iterator[list[str]]:
        """The cells of each row, in the order of `columns`. Raises the error that names the line."""
        usual = csv.field_size_limit(self._longest)
        try:
            rows: Iterator[list[str]] = self._reader
            if self._notes:
                rows = ([cell.strip() for cell in row] for row in rows if row and not row[0].startswith("#"))
            header = next(rows, None) or []
            wide = len(header)
            at = self._places(header)
            for row in rows:
                if len(row) != wide:
                    if not row and self._any_order:
                        continue
                    raise self._error(self.place, f"{wide} columns", ",".join(row))
                yield [row[place] for place in at] if at else row
        except csv.Error as error:
            raise self._error(self.place, "a row of CSV", str(error)) from None
        except UnicodeDecodeError:
            raise self._error(self.place, "CSV in UTF-8", "other bytes") from None
        finally:
            csv.field_size_limit(usual)

    def _places(self, header: Sequence[str]) -> list[int]:
        """Where in a row each column stands; none where that is as it should be."""
        if len(set(header)) < len(header):
            raise self._error(self.place, "each column once", ",".join(header))
        self.columns = self.columns or tuple(header)
        if tuple(header) == self.columns:
            return []
        if self._any_order and set(self.columns) <= set(header):
            return [header.index(name) for name in self.columns]
        raise self._error(self.place, f"the columns {','.join(self.columns)}", ",".join(header))


class Table(Generic[R]):
    """Rows of one kind."""

    def __init__(self, kind: type[R], error: type[BadInput] = BadInput) -> None:
        self.kind, self.error = kind, error
        self.columns = kind.__struct_encode_fields__

    def row(self, cells: Mapping[str, Any], where: str) -> R:
        """One row, of cells that are values or text. Raises the error that names the column."""
        return convert(cells, self.kind, where, strict=False, error=self.error)

    def read_csv(self, stream: TextIO, where: str, **options: Any) -> Iterator[R]:
        """Of a stream opened with `newline=""`; options are those of `Csv`. Raises the error that names line and
        column.
        """
        rows = Csv(stream, where, self.columns, error=self.error, **options)
        for cells in rows:
            named = dict(zip(self.columns, cells, strict=True))
            try:
                row = msgspec.convert(named, self.kind, strict=False)
            except MALFORMED:
                row = self.row(named, rows.place)
            yield row

    def write_csv(self, rows: Iterable[R], out: TextIO) -> None:
        """The inverse of `read_csv`."""
        write_csv(out, self.columns, map(msgspec.structs.astuple, rows))

    @functools.cached_property
    def arrow_types(self) -> dict[str, str]:
        """Column → its type, as Arrow names it."""
        return {field.encode_name: _arrow_type(field.type) for field in inspect.type_info(self.kind).fields}  # type: ignore[attr-defined]


def write_csv(out: TextIO, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A header and rows that read back as they were, to a stream opened with `newline=""`."""
    write = csv_writer(out)
    write(list(columns))
    for row in rows:
        write(list(row))


def csv_writer(out: TextIO) -> Callable[[Sequence[object]], object]:
    """Writes one row."""
    plain = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def write(row: Sequence[object]) -> None:
        # The writer quotes a line feed in a name, but not a lone carriage return.
        odd = any("\r" in cell for cell in row if isinstance(cell, str))
        (quoting if odd else plain).writerow(row)

    return write


def parquet() -> tuple[Any, Any]:
    """pyarrow and its part for Parquet. Raises Unavailable."""
    try:
        import pyarrow
        from pyarrow import parquet as found
    except ImportError as error:
        raise Unavailable(f"Parquet: expected pyarrow (pip install pyarrow): {error}") from None
    return pyarrow, found


def write_parquet(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str] | None = None
) -> None:
    """Rows of columns → their types, as Arrow names them; without `columns` they are as the rows' values."""
    arrow, files = parquet()
    if columns is None:
        files.write_table(arrow.Table.from_pylist(list(rows)), path)
        return
    schema = arrow.schema([(name, arrow.type_for_alias(kind)) for name, kind in columns.items()])
    left = iter(rows)
    with files.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(itertools.islice(left, BATCH)):
            writer.write_table(arrow.Table.from_pylist(batch, schema))


def read_parquet(path: Path, what: str, error: type[BadInput] = BadInput) -> Iterator[dict[str, Any]]:
    """Rows of any columns. Raises the error where it is not `what`."""
    arrow, files = parquet()
    try:
        with files.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH):
                yield from batch.to_pylist()
    except (OSError, arrow.ArrowException) as problem:
        raise error(str(path), f"{what} as Parquet", (str(problem).splitlines() or ["none"])[0]) from None


def _arrow_type(of: inspect.Type) -> str:
    if isinstance(of, inspect.Metadata):
        return (of.extra or {}).get("arrow") or _arrow_type(of.type)
    kinds = {inspect.BoolType: "bool", inspect.IntType: "int64", inspect.FloatType: "float64"}
    return kinds.get(type(of), "string")


_AT = re.compile(r"(.*?)(?: - at (`key` in )?`\$?(.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_TYPE = re.compile(r"Expected `.*|Invalid enum value .*|Number out of range", re.DOTALL)


def convert(
    raw: Any,
    kind: type[T],
    where: str,
    keys: Keys = (),
    *,
    strict: bool = True,
    error: type[BadInput] = BadInput,
) -> T:
    """`raw` as a `kind`; keys: where in `where` it stands. Raises the error that names the key."""
    try:
        return msgspec.convert(raw, kind, strict=strict)
    except MALFORMED as problem:
        text, of_key, path = _AT.fullmatch(str(problem)).groups()  # type: ignore[union-attr]
    path = (path or "") + ("[...]" if of_key else "")
    here: Any = kind
    for name, number in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if number == "...":  # msgspec does not say which of a dictionary's entries it is
            of_keys, of_values = typing.get_args(_plain(here, raw))
            for key, value in raw.items():
                convert(key, of_keys, where, (*keys, key), strict=strict, error=error)
                convert(value, of_values, where, (*keys, key), strict=strict, error=error)
            break
        key = int(number) if number else name
        here, raw, keys = _inner(_plain(here, raw), key), raw[key], (*keys, key)
    field = _FIELD.fullmatch(text)
    if field and field[1].startswith("missing"):
        expected = described(_inner(_plain(here, raw), field[2]))
        raise error(placed(where, (*keys, field[2])), expected, "none") from None
    if field:
        known = ", ".join(_plain(here, raw).__struct_encode_fields__)
        raise error(placed(where, (*keys, field[2])), f"a key among {known}", field[2]) from None
    if _TYPE.fullmatch(text):
        raise error(placed(where, keys), described(here), raw) from None
    raise error(placed(where, keys), text, None if isinstance(raw, (Mapping, list)) else raw) from None


def placed(where: str, keys: Sequence[str | int]) -> str:
    """`file: table.list[0].key`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return f"{where}: {text}" if text else where


def _plain(kind: Any, raw: Any) -> Any:
    """Without what is annotated; of several kinds the one that `raw` could be."""
    if hasattr(kind, "__metadata__"):
        return _plain(kind.__origin__, raw)
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        among = [_plain(each, raw) for each in typing.get_args(kind)]
        lists = [each for each in among if typing.get_origin(each) in (list, tuple)]
        tables = [each for each in among if each not in lists and not _single(each)]
        return next(iter(lists if isinstance(raw, (list, tuple)) else tables), among[0])
    return kind


def _single(kind: Any) -> bool:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return typing.get_origin(kind) is None and not is_struct


def _inner(kind: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return typing.get_args(kind)[0]
    if typing.get_origin(kind) is dict:
        return typing.get_args(kind)[1]
    return next((f.type for f in msgspec.structs.fields(kind) if f.encode_name == key), Any)


def described(kind: Any) -> str:
    """What a value of that type is, in words."""
    return _described(inspect.type_info(kind))


def _described(of: inspect.Type) -> str:
    if isinstance(of, inspect.Metadata):
        title = (of.extra_json_schema or {}).get("title")
        return str(title) if title else _described(of.type)
    if isinstance(of, inspect.UnionType):
        return " or ".join(_described(each) for each in of.types if not isinstance(each, inspect.NoneType))
    if isinstance(of, inspect.IntType):
        return f"a whole number{_range(of)}"
    if isinstance(of, inspect.FloatType):
        return f"a number{_range(of)}"
    if isinstance(of, inspect.LiteralType):
        return f"one of {', '.join(map(str, of.values))}"
    if isinstance(of, inspect.BoolType):
        return "true or false"
    if isinstance(of, (inspect.StructType, inspect.DictType)):
        return "a table"
    if isinstance(of, inspect.StrType):
        least, most = of.min_length or 0, of.max_length
        return "text" + (
            f" of {least} to {most} characters" if most else " that is not empty" if least else ""
        )
    return "a list" if isinstance(of, inspect.CollectionType) else "another value"


def _range(of: inspect.IntType | inspect.FloatType) -> str:
    if of.ge is not None and of.le is not None:
        return f", {_number(of.ge)} to {_number(of.le)}"
    bounds = ((of.ge, "{} or more"), (of.gt, "above {}"), (of.le, "{} or less"), (of.lt, "below {}"))
    said = [words.format(_number(value)) for value, words in bounds if value is not None]
    return f", {' and '.join(said)}" if said else ""


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
