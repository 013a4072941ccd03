"""Rows of a study: one for each run of each case, appended as they come, and read back after any end.

A study's folder holds `rows.jsonl` (one JSON object a line). A row is whole or not there: a line that a kill tore is
cut off when the study goes on. `rows.parquet` holds the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec
from msgspec import Meta

from tarazu import table
from tarazu.errors import BadInput
from tarazu.sim.model.outcome import JobOutcome
from tarazu.sim.study.scenario import Scalar


class Result(Protocol):
    """A row of whatever study."""

    @property
    def case(self) -> str:
        """Id of the case."""

    @property
    def run(self) -> int:
        """Which of the case's rows, from 1."""

    @property
    def runs(self) -> int:
        """Rows of this case."""


R = TypeVar("R", bound=Result)


class ScenarioRow(msgspec.Struct, frozen=True):
    """One run of one case. The same seed gives the same row, bit for bit, wherever it was computed."""

    case: Annotated[str, Meta(description="id of the case: hash of all that its result depends on")]
    scenario: Annotated[str, Meta(description="name of the scenario")]
    sweep: Annotated[
        dict[str, Scalar], Meta(description="swept keys and their values; `sweep.KEY` in Parquet")
    ]
    cluster: Annotated[str, Meta(description="name of the cluster")]
    osts: Annotated[int, Meta(description="number of OSTs")]
    layout: Annotated[str, Meta(description="layout of new files")]
    policy: Annotated[str, Meta(description="allocation policy")]
    seed: Annotated[int, Meta(description="seed")]
    run: Annotated[int, Meta(description="which run in a row, from 1")]
    runs: Annotated[int, Meta(description="runs of this case")]
    error: Annotated[str, Meta(description="why there is no result; empty: there is one")] = ""
    start_s: Annotated[float, Meta(description="when the run started, on the simulation's clock")] = 0.0
    completion_s: Annotated[
        float, Meta(description="seconds until the last job that is waited for had ended")
    ] = 0.0
    read_bytes: Annotated[int, Meta(description="bytes read by jobs that are waited for")] = 0
    written_bytes: Annotated[int, Meta(description="bytes written by them")] = 0
    read_bytes_per_s: Annotated[float, Meta(description="their bandwidth while at least one read")] = 0.0
    write_bytes_per_s: Annotated[float, Meta(description="their bandwidth while at least one wrote")] = 0.0
    read_limit_bytes_per_s: Annotated[
        float, Meta(description="no placement can read faster: all OSTs, links, routers and nodes busy")
    ] = 0.0
    write_limit_bytes_per_s: Annotated[float, Meta(description="no placement can write faster")] = 0.0
    ost_cost: Annotated[
        float, Meta(description="max / mean of the new bytes over the OSTs (paper, equation 4)")
    ] = 0.0
    ost_cost_bound: Annotated[float, Meta(description="no placement can have a lower OST cost")] = 0.0
    fill_max: Annotated[float, Meta(description="used share of the fullest OST at the end")] = 0.0
    fill_mean: Annotated[float, Meta(description="used share of all OSTs at the end")] = 0.0
    events: Annotated[int, Meta(description="times at which bandwidth was shared again")] = 0
    stand_in: Annotated[str, Meta(description="workloads that stand in for data that is not available")] = ""
    assumed: Annotated[str, Meta(description="what was taken for true where a log says nothing")] = ""
    jobs: Annotated[tuple[JobOutcome, ...], Meta(description="each job's times, bytes and OST cost")] = ()
    ost_placed_bytes: Annotated[
        tuple[int, ...], Meta(description="new bytes on each OST; with `per_ost`")
    ] = ()
    ost_busy_s: Annotated[tuple[float, ...], Meta(description="busy time of each OST; with `per_ost`")] = ()
    ost_queue_wait_s: Annotated[
        tuple[float, ...],
        Meta(description="each moment times the operations under way there but one; with `per_ost`"),
    ] = ()
    oss_cpu_s: Annotated[
        tuple[float, ...],
        Meta(description="time in which all CPUs of each OSS were busy with its bytes; with `per_ost`"),
    ] = ()
    ost_done_s: Annotated[
        tuple[float, ...],
        Meta(description="when its last byte had moved, after the run's start; 0: none did; with `per_ost`"),
    ] = ()
    ost_fill: Annotated[
        tuple[float, ...], Meta(description="used share of each OST at the end; with `per_ost`")
    ] = ()


def encode(rows: Iterable[Result]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def read(path: Path) -> list[ScenarioRow]:
    """The rows of a file of JSON Lines or Parquet. Raises BadInput, Unavailable without pyarrow."""
    return _read_parquet(path) if path.suffix == ".parquet" else read_lines(path, ScenarioRow)[0]


def read_lines(path: Path, kind: type[R]) -> tuple[list[R], int]:
    """Rows, and how many bytes of the file they are: what follows is a torn last line."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise BadInput(str(path), "rows of a study", error.strerror) from None
    rows: list[R] = []
    decoder = msgspec.json.Decoder(kind)
    whole = content.rfind(b"\n") + 1
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            rows.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise BadInput(f"{path}:{number}", "a row of a study (--fresh starts anew)", str(error)) from None
    return rows, whole


class Journal(Generic[R]):
    """`rows.jsonl` of one study: what is done, and where new rows go.

    order: id → place in the canonical order, of the cases that the study has now; kind: what a row is.
    """

    def __init__(self, path: Path, order: Mapping[str, int], kind: type[R]) -> None:
        self.path = path
        self.order = order
        rows, whole = read_lines(path, kind)
        counted = Counter(row.case for row in rows)
        self.rows = [row for row in rows if row.case in order and counted[row.case] == row.runs]
        """Of complete cases of this study."""
        self.set_aside = [row for row in rows if row.case not in order]
        """Of other scenarios, or of this one before it was changed."""
        if self.set_aside:
            with path.with_name("earlier.jsonl").open("ab") as earlier:
                _whole(earlier.fileno(), encode(self.set_aside))
        if len(self.rows) < len(rows):
            self._replace()
        elif path.exists() and path.stat().st_size > whole:
            os.truncate(path, whole)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @property
    def done(self) -> set[str]:
        return {row.case for row in self.rows}

    def append(self, rows: Sequence[R]) -> None:
        """All rows of one case, on the disk when this returns."""
        _whole(self._file, encode(rows))
        self.rows += rows

    def finish(self) -> list[R]:
        """Sort by the canonical order: the file is the same whoever computed its rows, and when."""
        self.rows.sort(key=lambda row: (self.order[row.case], row.run))
        self._replace()
        self.close()
        return self.rows

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _replace(self) -> None:
        beside = self.path.with_name(self.path.name + ".new")
        with beside.open("wb") as new:
            _whole(new.fileno(), encode(self.rows))
        beside.replace(self.path)


def _whole(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def write_parquet(rows: Sequence[ScenarioRow], path: Path) -> Path:
    """The same rows as columns; each swept key is one, `sweep.KEY`. Raises Unavailable without pyarrow."""
    records = []
    for row in rows:
        record = msgspec.to_builtins(row)
        swept = record.pop("sweep")
        records.append({**record, **{f"sweep.{key}": value for key, value in swept.items()}})
    beside = path.with_name(path.name + ".new")
    table.write_parquet(beside, records)
    beside.replace(path)
    return path


def _read_parquet(path: Path) -> list[ScenarioRow]:
    records = list(table.read_parquet(path, "rows of a study"))
    for record in records:
        keys = [key for key in record if key.startswith("sweep.")]
        record["sweep"] = {key.removeprefix("sweep."): record.pop(key) for key in keys}
    return table.convert(records, list[ScenarioRow], str(path))
