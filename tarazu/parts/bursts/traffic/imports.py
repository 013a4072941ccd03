"""Traffic out of CSV files as Zabbix and Prometheus export them, into days.

A row says for a node and a time what a counter stood at, or what was moved; its columns have any names. What came
between two rows of a node is spread evenly over the time between them. Rows of one node are in time order; those that
go back are left out, and counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tarazu.errors import BadInput, StoreError
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.day_file import MAX_NODES
from tarazu.parts.bursts.traffic.traffic import UNKNOWN, Traffic
from tarazu.table import parquet
from tarazu.units import counted

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Kind = Literal["counters", "amounts", "rates"]

METRICS = ("read", "written", "network")
TIMES = ("clock", "timestamp", "time", "Time")
NODES = ("node", "host", "hostname", "instance", "itemid")
NAMES = ("key", "metric", "__name__", "name")
VALUES = ("value", "Value")
MOST_ROWS = 4_000_000
"""Of a part."""
MOST_INTERVALS = 10_000
"""Between two rows of a node."""
MAX_BYTES = 1 << 60
MAX_ITEMS = 10_000_000
BLOCK = 8 << 20
"""Bytes of a large CSV that are in memory at a time."""


@dataclass(frozen=True)
class Columns:
    """What is where; empty: found by its usual names."""

    time: str = ""
    node: str = ""
    """A port at its end (`n001:9100`) is taken off."""
    read: str = ""
    """Of a file with a column for each: its column; else what `metric` says of such rows."""
    written: str = ""
    network: str = ""
    metric: str = ""
    value: str = ""


@dataclass(frozen=True)
class Rules:
    kind: Kind = "counters"
    """counters: that only grow, or begin again; amounts: since the row before; rates: bytes per second."""
    interval_s: float = 10.0
    gap_s: float = 3600.0
    """What came in a longer time without rows is left out."""
    scale: float = 1.0
    """Bytes of one."""


@dataclass
class Imported:
    rows: int = 0
    """Of the files."""
    first_s: float = float("inf")
    last_s: float = 0.0
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(METRICS, 0))
    back: int = 0
    """Rows that go back in time, or stand still."""
    gaps: int = 0
    resets: int = 0
    not_numbers: int = 0
    malformed: int = 0
    """Rows of more or fewer columns than the header."""
    others: int = 0
    """Rows of other metrics, or of items that are not known."""
    nodes: int = 0


class Item(NamedTuple):
    node: str
    metric: str


def read(
    paths: Sequence[Path],
    directory: str | Path,
    columns: Columns,
    rules: Rules,
    *,
    items: Mapping[str, Item] | None = None,
    add: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Into the days of `directory`: all of it or nothing. items: what Zabbix's `itemid` are.

    add: where days have traffic already, the sum is kept; else that is refused. Raises BadInput, StoreError.
    """
    folder = Path(directory)
    staging = folder / ".import"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        importing = _Import(staging, columns, rules, items or {})
        for path in paths:
            importing.file(path, progress)
        importing.flush()
        _move(staging, folder, add)
    except OSError as error:
        raise StoreError(str(folder), "a directory that can be written", error.strerror) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    importing.told.nodes = len(importing.nodes)
    return importing.told


def read_items(path: Path, columns: Columns) -> dict[str, Item]:
    """`itemid,host,key` of Zabbix's items. Raises BadInput."""
    items: dict[str, Item] = {}
    for batch, header in csv_blocks(path):
        names = [_one_of(header, (), ("itemid",), path), _one_of(header, (columns.node,), NODES[:3], path)]
        names.append(_one_of(header, (columns.metric,), ("key_", *NAMES), path))
        for id, node, key in zip(*(batch.column(n).cast("string").to_pylist() for n in names), strict=True):
            if id and node:
                items[id] = Item(node, key or "")
        if len(items) > MAX_ITEMS:
            raise BadInput(str(path), f"at most {MAX_ITEMS} items", "more")
    return items


class _Import:
    def __init__(self, staging: Path, columns: Columns, rules: Rules, items: Mapping[str, Item]) -> None:
        self.told = Imported()
        self.nodes: dict[str, int] = {}
        self._staging, self._columns, self._rules, self._items = staging, columns, rules, items
        self._wanted = {
            name: metric for metric in METRICS for name in getattr(columns, metric).split(",") if name
        }
        if not self._wanted:
            raise BadInput("import", "which column or metric is what was read or written", "none")
        if len(self._wanted) < sum(
            len(getattr(columns, m).split(",")) for m in METRICS if getattr(columns, m)
        ):
            raise BadInput("import", "each column or metric named once", ", ".join(self._wanted)[:120])
        if not 0 < rules.scale < float("inf") or not 0 < rules.gap_s < float("inf"):
            raise BadInput("import", "a scale and a gap above 0", f"{rules.scale:g} and {rules.gap_s:g} s")
        self._metrics = {name: i for i, name in enumerate(self._wanted)}
        self._last_s = np.zeros(0)
        self._last = np.zeros(0)
        """By series, a node's of a metric: time and value of its last row."""
        self._held: list[tuple[Whole, Whole, Whole, Whole]] = []
        """(time, node, what of METRICS, bytes)"""

    def file(self, path: Path, progress: Callable[[str], None]) -> None:
        self._last_s[:] = np.nan  # each file begins anew
        for batch, header in csv_blocks(path, self._malformed):
            self.told.rows += len(batch)
            self._batch(batch, header, path)
            if sum(len(held[0]) for held in self._held) > MOST_ROWS:
                self.flush()
            progress(f"{path.name}: {counted(self.told.rows, 'row')}")

    def _malformed(self) -> None:
        self.told.malformed += 1

    def _batch(self, batch: Any, header: Sequence[str], path: Path) -> None:
        own = self._columns
        time_s = _times(batch.column(_one_of(header, (own.time,), TIMES, path)))
        node, known = self._nodes_of(batch, _one_of(header, (own.node,), NODES, path))
        wide = [name for name in self._wanted if name in header]
        if wide:
            for name in wide:
                self._series(time_s, node, self._metrics[name], _numbers(batch.column(name)))
            return
        value = _numbers(batch.column(_one_of(header, (own.value,), VALUES, path)))
        if known is not None:
            metric = known
        elif own.metric or set(NAMES) & set(header):
            metric = self._metrics_of(batch.column(_one_of(header, (own.metric,), NAMES, path)))
        elif len(self._wanted) == 1:
            metric = np.zeros(len(node), np.int64)
        else:
            raise BadInput(
                str(path), "a column that says what was counted", f"the columns {', '.join(header)[:120]}"
            )
        self.told.others += int(((metric < 0) | (node < 0)).sum())
        for which in range(len(self._wanted)):
            some = metric == which
            self._series(time_s[some], node[some], which, value[some])

    def _nodes_of(self, batch: Any, name: str) -> tuple[Whole, Whole | None]:
        """(rows,) which node; by items also which metric. -1: not known."""
        from pyarrow import compute

        column = compute.dictionary_encode(batch.column(name).cast("string"))
        texts, at = column.dictionary.to_pylist(), compute.fill_null(column.indices, -1).to_numpy()
        items = [self._items.get(text) for text in texts] if self._items and name == "itemid" else None
        if items is not None:
            names = [item.node if item else "" for item in items]
            metrics = np.array([self._metrics.get(item.metric, -1) if item else -1 for item in items] + [-1])
        else:
            names = [_host(text) for text in texts]
        index = [self.nodes.setdefault(each, len(self.nodes)) if each else -1 for each in names]
        if len(self.nodes) > MAX_NODES:
            raise BadInput("import", f"at most {MAX_NODES} nodes", "more")
        return np.array([*index, -1])[at], None if items is None else metrics[at]

    def _metrics_of(self, column: Any) -> Whole:
        from pyarrow import compute

        encoded = compute.dictionary_encode(column.cast("string"))
        of = [self._metrics.get(text, -1) for text in encoded.dictionary.to_pylist()]
        at: Whole = compute.fill_null(encoded.indices, -1).to_numpy()
        return np.array([*of, -1])[at]

    def _series(self, time_s: Floats, node: Whole, metric: int, value: Floats) -> None:
        """Rows of one metric: the differences to those before, each spread over its time."""
        usable = np.isfinite(time_s) & np.isfinite(value) & (node >= 0) & (value >= 0)
        self.told.not_numbers += int((node >= 0).sum() - usable.sum())
        time_s, node, value = time_s[usable], node[usable], value[usable]
        if not len(time_s):
            return
        series = node * len(self._wanted) + metric
        if (more := int(series.max()) + 1 - len(self._last)) > 0:
            self._last = np.append(self._last, np.zeros(more))
            self._last_s = np.append(self._last_s, np.full(more, np.nan))
        order = np.argsort(series, kind="stable")
        order = order[~_goes_back(series[order], time_s[order], self._last_s)]
        self.told.back += len(series) - len(order)
        time_s, node, value, series = time_s[order], node[order], value[order], series[order]
        first = np.append(True, series[1:] != series[:-1])
        before_s = np.where(first, self._last_s[series], np.append(np.nan, time_s[:-1]))
        before = np.where(first, self._last[series], np.append(0.0, value[:-1]))
        last = np.append(first[1:], True)
        self._last_s[series[last]], self._last[series[last]] = time_s[last], value[last]
        length_s = time_s - before_s
        long = length_s > self._rules.gap_s
        self.told.gaps += int(long.sum())
        if self._rules.kind == "counters":
            moved = value - before
            reset = moved < 0
            self.told.resets += int((reset & ~np.isnan(length_s)).sum())
            moved = np.where(reset, value, moved)
        else:
            moved = value * length_s if self._rules.kind == "rates" else value
        some = ~np.isnan(length_s) & ~long & (moved > 0)
        amounts = np.minimum(moved[some] * self._rules.scale, MAX_BYTES)
        self._spread(before_s[some], time_s[some], node[some], amounts, metric)

    def _spread(self, begin_s: Floats, end_s: Floats, node: Whole, moved: Floats, metric: int) -> None:
        step = self._rules.interval_s
        first = np.floor(begin_s / step).astype(np.int64)
        count = np.maximum(1, np.ceil(end_s / step).astype(np.int64) - first)
        if len(count) and int(count.max()) > MOST_INTERVALS:
            raise BadInput("import", f"rows at most {MOST_INTERVALS} intervals apart", f"{count.max()}")
        row = np.repeat(np.arange(len(first)), count)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        number = first[row] + nth
        upto_s = np.minimum((number + 1) * step, end_s[row])
        so_far = np.floor(moved[row] * ((upto_s - begin_s[row]) / (end_s - begin_s)[row]) + 1e-6)
        so_far = np.where(nth == count[row] - 1, np.rint(moved[row]), so_far)
        part = so_far - np.where(nth == 0, 0, np.append(0, so_far[:-1]))
        some = part > 0
        which = METRICS.index(list(self._wanted.values())[metric])
        amounts = part[some].astype(np.int64)
        times = (number[some] * step).astype(np.int64)
        self._held.append((times, node[row[some]], np.full(len(times), which), amounts))
        if len(times):
            self.told.bytes[METRICS[which]] += int(amounts.sum())
            self.told.first_s = min(self.told.first_s, float(times.min()))
            self.told.last_s = max(self.told.last_s, float(times.max()) + step)

    def flush(self) -> None:
        """What is held becomes a part."""
        held, self._held = self._held, []
        if not held or not sum(len(each[0]) for each in held):
            return
        time_s, node, which, amounts = (np.concatenate([each[i] for each in held]) for i in range(4))
        counted = "network" in self._wanted.values()
        network = np.where(which == 2, amounts, UNKNOWN) if counted else None
        traffic = Traffic(
            tuple(self.nodes),
            self._rules.interval_s,
            time_s,
            node.astype(np.int32),
            np.where(which == 0, amounts, 0),
            np.where(which == 1, amounts, 0),
            network,
        )
        days.append(self._staging, traffic)


def _goes_back(series: Whole, time_s: Floats, last_s: Floats) -> npt.NDArray[np.bool_]:
    """(rows,), by series: not after all rows of the same series before. A counter's growth would count twice."""
    before_s = np.where(
        np.append(True, series[1:] != series[:-1]), last_s[series], np.append(0.0, time_s[:-1])
    )
    back = time_s <= before_s
    for which in np.unique(series[back]):
        begin, end = np.searchsorted(series, [which, which + 1])
        latest_s = np.fmax.accumulate(np.append(last_s[which], time_s[begin:end]))
        back[begin:end] = time_s[begin:end] <= latest_s[:-1]
    return back


def _move(staging: Path, folder: Path, add: bool) -> None:
    """What is staged becomes parts of its days. Raises BadInput where that would add to what is there."""
    parts = sorted((staging / "parts").glob("*.parquet"))
    if not add:
        there = {
            path.name[:10] for path in [*folder.glob("*.parquet"), *(folder / "parts").glob("*.parquet")]
        }
        twice = sorted(there & {path.name[:10] for path in parts})
        if twice:
            raise BadInput(
                str(folder),
                "days without traffic (--add: both are summed up)",
                f"traffic of {', '.join(twice)[:80]}",
            )
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    for path in parts:
        path.rename(folder / "parts" / path.name)


def _host(text: str | None) -> str:
    """`n001:9100` → `n001`."""
    if not text:
        return ""
    name, colon, port = text.rpartition(":")
    return name if colon and port.isdigit() and ":" not in name else text


def _one_of(header: Sequence[str], told: Sequence[str], usual: Sequence[str], path: Path) -> str:
    named = [name for name in told if name]
    for name in named or usual:
        if name in header:
            return name
    raise BadInput(
        str(path), f"a column {' or '.join(named or usual)}", f"the columns {', '.join(header)[:120]}"
    )


def _numbers(column: Any) -> Floats:
    """Text that is no number is NaN."""
    import pyarrow
    from pyarrow import compute

    try:
        numbers: Floats = compute.fill_null(column.cast(pyarrow.float64()), np.nan).to_numpy(
            zero_copy_only=False
        )
        return numbers
    except pyarrow.ArrowInvalid:
        return np.array([_number(text) for text in column.to_pylist()])


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _times(column: Any) -> Floats:
    """Seconds since 1970, of seconds, milliseconds or ISO 8601 (local time, where it names no zone)."""
    times = _numbers(column)
    if np.isnan(times).all() and len(times):
        times = np.array([_iso(text) for text in column.to_pylist()])
    times = np.where(times > 1e11, times / 1000, times)
    return np.where((times >= 0) & (times < days.LAST_S), times, np.nan)


def _iso(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except (ValueError, OverflowError, OSError):
        return float("nan")


def csv_blocks(path: Path, malformed: Callable[[], None] = lambda: None) -> Iterator[tuple[Any, list[str]]]:
    """Arrow's blocks of a CSV file (`.gz` too) of any size, with its header; all columns as text. `malformed` is called
    for each row with more or fewer columns. Raises BadInput.
    """
    arrow, _ = parquet()
    from pyarrow import csv

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = "" if path.suffix == ".gz" else file.readline(1 << 16)
        delimiter = max(",;\t|", key=first.count) if first else ","
        reading = csv.ReadOptions(block_size=BLOCK)
        parsing = csv.ParseOptions(delimiter=delimiter, invalid_row_handler=lambda _: "skip")

        def skip(_: object) -> str:
            malformed()
            return "skip"

        with csv.open_csv(path, reading, parsing) as header_only:
            names: list[str] = header_only.schema.names
        if len(set(names)) < len(names):
            raise BadInput(str(path), "a header that names each column once", ", ".join(names)[:120])
        types = csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.string()), strings_can_be_null=True
        )
        parsing.invalid_row_handler = skip
        with csv.open_csv(path, reading, parsing, types) as reader:
            for batch in reader:
                yield batch, names
    except FileNotFoundError:
        raise BadInput(str(path), "a readable file", "none") from None
    except (OSError, UnicodeDecodeError, arrow.ArrowException) as error:
        raise BadInput(str(path), "a CSV file with a header", str(error)[:200]) from None
