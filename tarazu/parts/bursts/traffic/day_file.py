"""One Parquet file of traffic: columns time_s, node, read, written, network; rows (time, node), ascending.

What it is stands in its footer, under `tarazu`: version, interval, names of nodes, which other files it stands for.
"""

from __future__ import annotations

import itertools
import math
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from tarazu import durable
from tarazu.errors import BadInput, StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.parts.bursts.traffic.merging import grouped, rows
from tarazu.parts.bursts.traffic.traffic import UNKNOWN, Numbers, Traffic

VERSION = 1
KEY = b"tarazu"
ROWS = 1 << 20
"""Of a row group: what is in memory at a time."""
MAX_NODES = 1_000_000
COLUMNS = ("time_s", "node", "read", "written", "network")


class About(msgspec.Struct, frozen=True):
    """The footer's own words."""

    version: int
    interval_s: Annotated[float, msgspec.Meta(gt=0)]
    nodes: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_NODES)]
    """Sorted."""
    replaces: tuple[str, ...] = ()
    """Files whose rows are here: where one is still there, it was left by a crash."""


class DayFile:
    """One that is there, open: it can be read also after it was removed. `close` it."""

    def __init__(self, path: Path) -> None:
        """Raises BadInput for what is none; FileNotFoundError."""
        import pyarrow
        from pyarrow import parquet

        self.path = path
        try:
            self._file = parquet.ParquetFile(path, read_dictionary=["node"])
        except FileNotFoundError:
            raise
        except (OSError, KeyError, ValueError, pyarrow.ArrowException) as error:
            raise BadInput(str(path), "a Parquet file of traffic", str(error)[:200]) from None
        try:
            self.about = _about(self._file, path)
            self._spans = _spans(self._file, path)
        except (ValueError, LookupError, pyarrow.ArrowException) as error:
            self._file.close()
            raise BadInput(str(path), "a Parquet file of traffic", str(error)[:200]) from None
        except BaseException:
            self._file.close()
            raise

    @property
    def first_s(self) -> int:
        return self._spans[0][0] if self._spans else 0

    @property
    def last_s(self) -> int:
        """When its last interval began."""
        return self._spans[-1][1] if self._spans else 0

    @property
    def rows(self) -> int:
        return int(self._file.metadata.num_rows)

    def chunks(self, start_s: float, end_s: float, nodes: tuple[str, ...]) -> Iterator[Traffic]:
        """Its rows of intervals that began in [start_s, end_s), a row group at a time. `nodes`: sorted names, its own
        among them. Raises BadInput.
        """
        import pyarrow

        names = pyarrow.array(nodes, pyarrow.string())
        before_s = -math.inf
        for number, (first_s, last_s) in enumerate(self._spans):
            if last_s < start_s or first_s >= end_s:
                continue
            try:
                table = self._file.read_row_group(number, columns=list(COLUMNS))
                traffic = _traffic(table, names, nodes, self.about.interval_s)
            except (OSError, pyarrow.ArrowException, LookupError, ValueError) as error:
                raise BadInput(str(self.path), "rows of traffic", str(error)[:200]) from None
            if not len(traffic):
                continue
            if int(traffic.node.min()) < 0:
                raise BadInput(str(self.path), "nodes that its footer names", "others")
            if traffic.time_s[0] < before_s or (np.diff(traffic.time_s) < 0).any():
                raise BadInput(str(self.path), "rows in the order of their times", "others")
            before_s = int(traffic.time_s[-1])
            if first_s < start_s or last_s >= end_s:
                inside = slice(*np.searchsorted(traffic.time_s, [start_s, end_s]))
                traffic = rows(traffic, inside)
            if len(traffic):
                yield traffic

    def close(self) -> None:
        self._file.close()


def write(path: Path, chunks: Iterable[Traffic], replaces: Iterable[str] = ()) -> int:
    """Ascending chunks, of one interval and the same (sorted) nodes, to a file that is there whole or not at all, and
    on disk when this returns; its bytes. Of no rows there is none. Raises StoreError.
    """
    import pyarrow
    from pyarrow import parquet

    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    writer = None
    try:
        for traffic in grouped(chunks, ROWS):
            if writer is None:
                about = About(VERSION, traffic.interval_s, traffic.nodes, tuple(replaces))
                schema = _schema().with_metadata({KEY: msgspec.json.encode(about)})
                names = pyarrow.array(traffic.nodes, pyarrow.string())
                writer = parquet.ParquetWriter(
                    part,
                    schema,
                    compression="zstd",
                    use_dictionary=["time_s", "node"],
                    write_statistics=["time_s"],
                )
            writer.write_table(_table(traffic, names, schema), row_group_size=ROWS)
        if writer is None:
            return 0
        writer.close()
        descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        part.rename(path)
        durable.sync_directory(path.parent)
    except (OSError, pyarrow.ArrowException) as error:
        raise StoreError(str(path), "a file that can be written", str(error)[:200]) from None
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        part.unlink(missing_ok=True)
    return size


def _schema() -> Any:
    import pyarrow

    long = pyarrow.int64()
    return pyarrow.schema(
        [
            pyarrow.field("time_s", long, nullable=False),
            pyarrow.field("node", pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), nullable=False),
            pyarrow.field("read", long, nullable=False),
            pyarrow.field("written", long, nullable=False),
            pyarrow.field("network", long),
        ]
    )


def _table(traffic: Traffic, names: Any, schema: Any) -> Any:
    import pyarrow

    network = pyarrow.nulls(len(traffic), pyarrow.int64())
    if traffic.network is not None:
        network = pyarrow.array(traffic.network, mask=traffic.network == UNKNOWN)
    node = pyarrow.DictionaryArray.from_arrays(pyarrow.array(traffic.node, pyarrow.int32()), names)
    columns = [pyarrow.array(traffic.time_s), node, pyarrow.array(traffic.read)]
    return pyarrow.Table.from_arrays([*columns, pyarrow.array(traffic.written), network], schema=schema)


def _traffic(table: Any, names: Any, nodes: tuple[str, ...], interval_s: float) -> Traffic:
    from pyarrow import compute

    network = table["network"]
    return Traffic(
        nodes,
        interval_s,
        table["time_s"].to_numpy(),
        _indices(table["node"], names),
        table["read"].to_numpy(),
        table["written"].to_numpy(),
        None
        if network.null_count == len(table)
        else compute.fill_null(network, UNKNOWN).to_numpy().astype(np.int64, copy=False),
    )


def _indices(column: Any, names: Any) -> Numbers:
    """Where in `names` each is; -1 for one that is not there."""
    from pyarrow import compute

    pieces = []
    for chunk in column.chunks:
        here = compute.fill_null(compute.index_in(chunk.dictionary, value_set=names), -1).to_numpy()
        pieces.append(here[chunk.indices.to_numpy()].astype(np.int32, copy=False))
    return np.concatenate(pieces) if pieces else np.empty(0, np.int32)


def _about(file: Any, path: Path) -> About:
    metadata = (file.schema_arrow.metadata or {}).get(KEY)
    if metadata is None:
        raise BadInput(str(path), "a file of traffic, as tarazu-burstd writes it", "another Parquet file")
    try:
        about = msgspec.json.decode(metadata, type=About)
    except MALFORMED as error:
        raise BadInput(str(path), "what a file of traffic says of itself", str(error)[:200]) from None
    if about.version != VERSION:
        raise BadInput(str(path), f"version {VERSION}", str(about.version))
    missing = set(COLUMNS) - set(file.schema_arrow.names)
    if missing:
        raise BadInput(str(path), "the columns " + ", ".join(COLUMNS), f"none named {min(missing)}")
    for wanted in _schema():
        found_type = file.schema_arrow.field(wanted.name).type
        if found_type != wanted.type:
            raise BadInput(str(path), f"{wanted.name} of type {wanted.type}", str(found_type)[:200])
    return about


def _spans(file: Any, path: Path) -> list[tuple[int, int]]:
    """First and last time of each row group."""
    spans: list[tuple[int, int]] = []
    metadata = file.metadata
    column = file.schema_arrow.names.index("time_s")
    for number in range(metadata.num_row_groups):
        times = metadata.row_group(number).column(column)
        # pyarrow 26 ends the process where it is asked for the statistics of times of another type.
        if times.physical_type != "INT64":
            raise BadInput(str(path), "times of type INT64", times.physical_type)
        statistics = times.statistics
        if statistics is None or not statistics.has_min_max:
            raise BadInput(str(path), "the least and greatest time of each row group", "none")
        spans.append((int(statistics.min), int(statistics.max)))
    if any(a[1] > b[0] for a, b in itertools.pairwise(spans)):
        raise BadInput(str(path), "row groups in time order", "others")
    return spans


described(About)
