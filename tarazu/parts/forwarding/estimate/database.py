"""Benchmarks: what each does and what it reached; and their database, a CSV file with a row for each repetition.

CSV, because everybody reads it (pandas, DuckDB, a spreadsheet), a site can write rows by hand, and what is added is a
few hundred rows at a time: SQLite's indexes would serve nobody, for it is always read as a whole. Each row carries the
version of the format. The file is written anew and renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu import durable, locks
from tarazu.errors import BadInput
from tarazu.malformed import described
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.reading import content
from tarazu.table import Table, write_csv
from tarazu.trace.phases.phase import Api, Operation, Sharing, Spatiality

VERSION = 1
MAX_BYTES = 32 << 20
MAX_ROWS = 200_000
MOST_RESOURCES = 65_535
LONGEST_TEXT = 100
LARGEST = 1 << 60
LEAST_RATE, MOST_RATE = 1e-6, 1e18

Whole = Annotated[int, Meta(ge=1, le=LARGEST)]
Words = Annotated[str, Meta(max_length=LONGEST_TEXT)]


class BenchmarkPattern(msgspec.Struct, frozen=True):
    """How a benchmark, or a phase that wants one, accesses its files. `kind` says what its curve counts."""

    kind: Kind
    operation: Operation
    api: Api
    sharing: Sharing
    spatiality: Spatiality
    request_bytes: Whole
    process_bytes: Whole
    """Bytes that each process moves."""
    processes: Whole
    nodes: Whole

    @property
    def bytes(self) -> int:
        return self.process_bytes * self.processes


class Measurement(msgspec.Struct, frozen=True):
    """One repetition: a row of the database."""

    pattern: BenchmarkPattern
    resources: int
    bytes_per_s: float
    origin: str
    """`ior-4.0.0`, `simulator`: who measured."""
    measured: str
    """When, as its origin says it; may be empty."""
    id: str
    """The same for the same measurement, however often it is imported."""


class Benchmark(msgspec.Struct, frozen=True):
    """A pattern, and its bandwidth by number of resources."""

    pattern: BenchmarkPattern
    curve: Curve


class BenchmarkRow(BenchmarkPattern, frozen=True):
    """One repetition, in the order of the file's columns."""

    resources: Annotated[int, Meta(ge=1, le=MOST_RESOURCES)]
    bytes_per_s: Annotated[float, Meta(ge=LEAST_RATE, le=MOST_RATE)]
    origin: Words
    measured: Words
    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
    version: Annotated[int, Meta(ge=1, le=10**6)]

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"benchmarks of version {VERSION}")
        if not f"{self.origin}{self.measured}{self.id}".isprintable():
            raise ValueError("origin, measured and id of printable characters")


TABLE = Table(BenchmarkRow)
COLUMNS = TABLE.columns


class Benchmarks:
    """What was measured, and the benchmarks that it makes."""

    def __init__(self, measurements: Iterable[Measurement] = ()) -> None:
        """A measurement whose id came before is left out. Raises BadInput for more than a file may hold."""
        self.measurements = tuple({m.id: m for m in measurements}.values())
        if len(self.measurements) > MAX_ROWS:
            raise BadInput("benchmarks", f"at most {MAX_ROWS} measurements", len(self.measurements))
        by_pattern: dict[BenchmarkPattern, list[tuple[int, float]]] = {}
        for m in self.measurements:
            by_pattern.setdefault(m.pattern, []).append((m.resources, m.bytes_per_s))
        self.all = tuple(Benchmark(pattern, curve(points)) for pattern, points in by_pattern.items())
        """In the order in which their first measurements stand."""

    def __len__(self) -> int:
        return len(self.all)

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
    return Benchmarks(_measurements(text, where))


def _measurements(text: str, where: str) -> Iterator[Measurement]:
    rows = TABLE.read_csv(io.StringIO(text, newline=""), where, any_order=True)
    for number, row in enumerate(rows):
        if number >= MAX_ROWS:
            raise BadInput(where, f"at most {MAX_ROWS} measurements", "more")
        *pattern, resources, bytes_per_s, origin, measured, id, _ = msgspec.structs.astuple(row)
        yield Measurement(BenchmarkPattern(*pattern), resources, bytes_per_s, origin, measured, id)


def encode(benchmarks: Benchmarks) -> str:
    """The content of a file of benchmarks."""
    text = io.StringIO(newline="")
    rows = (
        (*msgspec.structs.astuple(m.pattern), m.resources, m.bytes_per_s, m.origin, m.measured, m.id, VERSION)
        for m in benchmarks.measurements
    )
    write_csv(text, COLUMNS, rows)
    return text.getvalue()


@contextlib.contextmanager
def changing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Others that use this function cannot change the file meanwhile. Raises BadInput."""
    folder = Path(path).absolute().parent
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(str(folder), "a directory for benchmarks", error.strerror) from None
    try:
        locks.take(descriptor, fcntl.LOCK_EX)
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


described(BenchmarkRow)
