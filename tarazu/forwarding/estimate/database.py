"""The benchmark database: one CSV file, a row for each repetition of a measurement.

CSV, because everybody reads it (pandas, DuckDB, a spreadsheet), a site can write rows by hand, and what is added is a
few hundred rows at a time: SQLite's indexes would serve nobody, for it is always read as a whole. Each row carries the
version of the format. The file is written anew and renamed.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import msgspec

from tarazu import durable
from tarazu.errors import BadInput
from tarazu.forwarding.application import Kind
from tarazu.forwarding.curve import curve
from tarazu.forwarding.estimate.pattern import Benchmark, Measurement, Pattern
from tarazu.forwarding.reading import content
from tarazu.trace.phases.phase import Api, Operation, Sharing, Spatiality

VERSION = 1
MAX_BYTES = 32 << 20
MAX_ROWS = 200_000
MOST_RESOURCES = 65_535
LONGEST_TEXT = 100
LARGEST = 1 << 60
LEAST_RATE, MOST_RATE = 1e-6, 1e18
_WORDS: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "operation": get_args(Operation),
    "api": get_args(Api),
    "sharing": get_args(Sharing),
    "spatiality": get_args(Spatiality),
}
_PATTERN = tuple(f.name for f in msgspec.structs.fields(Pattern))
COLUMNS = ("version", *_PATTERN, "resources", "bytes_per_s", "origin", "measured", "id")


class Benchmarks:
    """What was measured, and the benchmarks that it makes."""

    def __init__(self, measurements: Iterable[Measurement] = ()) -> None:
        """A measurement whose id came before is left out. Raises BadInput for more than a file may hold."""
        self.measurements = tuple({m.id: m for m in measurements}.values())
        if len(self.measurements) > MAX_ROWS:
            raise BadInput("benchmarks", f"at most {MAX_ROWS} measurements", len(self.measurements))
        found: dict[Pattern, list[tuple[int, float]]] = {}
        for m in self.measurements:
            found.setdefault(m.pattern, []).append((m.resources, m.bytes_per_s))
        self.all = tuple(Benchmark(pattern, curve(points)) for pattern, points in found.items())
        """In the order in which their first measurements stand."""

    def __len__(self) -> int:
        return len(self.all)

    def without(self, pattern: Pattern) -> Benchmarks:
        """All others."""
        return Benchmarks(m for m in self.measurements if m.pattern != pattern)

    def with_(self, measurements: Iterable[Measurement]) -> Benchmarks:
        """These as well."""
        return Benchmarks((*self.measurements, *measurements))


def load(path: str | os.PathLike[str], missing_ok: bool = False) -> Benchmarks:
    """The benchmarks of a file. Raises BadInput, with the line, for what is none."""
    where = os.fspath(path)
    try:
        text = content(where, "a file of benchmarks", MAX_BYTES)
    except FileNotFoundError:
        if missing_ok:
            return Benchmarks()
        raise BadInput(where, "a file of benchmarks", "nothing there") from None
    return decode(text, where)


def decode(text: str, where: str = "benchmarks") -> Benchmarks:
    """The inverse of `encode`. Columns in any order; further ones are left alone. Raises BadInput."""
    return Benchmarks(_rows(text, where))


def _rows(text: str, where: str) -> Iterator[Measurement]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
        if missing:
            raise BadInput(f"{where}:1", f"a header with {', '.join(COLUMNS)}", f"no {missing[0]}")
        for number, row in enumerate(reader):
            if number >= MAX_ROWS:
                raise BadInput(where, f"at most {MAX_ROWS} measurements", "more")
            yield _measurement(row, f"{where}:{reader.line_num}")
    except csv.Error as error:
        raise BadInput(f"{where}:{reader.line_num}", "CSV", str(error)) from None


def _measurement(row: dict[str, str | None], where: str) -> Measurement:
    version = _whole(row, "version", where, 10**6)
    if version != VERSION:
        raise BadInput(where, f"benchmarks of version {VERSION}", version)
    for name, words in _WORDS.items():
        if row[name] not in words:
            raise BadInput(where, f"{name} among {', '.join(words)}", row[name])
    fields = {n: row[n] if n in _WORDS else _whole(row, n, where, LARGEST) for n in _PATTERN}
    try:
        rate = float(row["bytes_per_s"] or "")
    except ValueError:
        rate = 0.0
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise BadInput(where, f"bytes_per_s from {LEAST_RATE:g} to {MOST_RATE:g}", row["bytes_per_s"])
    texts = {name: row[name] or "" for name in ("origin", "measured", "id")}
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT or not text.isprintable() or (name == "id" and not text):
            raise BadInput(where, f"{name} of 1 to {LONGEST_TEXT} printable characters", text)
    return Measurement(
        msgspec.convert(fields, Pattern), _whole(row, "resources", where, MOST_RESOURCES), rate, **texts
    )


def _whole(row: dict[str, str | None], name: str, where: str, most: int) -> int:
    text = row[name] or ""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= most):
        raise BadInput(where, f"{name} as a whole number from 1 to {most}", row[name])
    return int(text)


def encode(benchmarks: Benchmarks) -> str:
    """The content of a file of benchmarks."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for m in benchmarks.measurements:
        pattern = msgspec.structs.astuple(m.pattern)
        writer.writerow((VERSION, *pattern, m.resources, repr(m.bytes_per_s), m.origin, m.measured, m.id))
    return text.getvalue()


@contextlib.contextmanager
def changing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Nobody else changes the file meanwhile who comes by this way, too. Raises BadInput."""
    folder = Path(path).absolute().parent
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(str(folder), "a directory for benchmarks", error.strerror) from None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def save(benchmarks: Benchmarks, path: str | os.PathLike[str]) -> None:
    """Write the file, instead of what was there, whole or not at all. Raises BadInput."""
    content = encode(benchmarks).encode()
    if len(content) > MAX_BYTES:
        raise BadInput(
            os.fspath(path), f"at most {MAX_BYTES >> 20} MiB of benchmarks", f"{len(content)} bytes"
        )
    try:
        durable.replace(path, content)
    except OSError as error:
        raise BadInput(os.fspath(path), "a file that benchmarks can be written to", error.strerror) from None
