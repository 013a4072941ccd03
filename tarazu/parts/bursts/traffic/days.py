"""A directory of traffic: a Parquet file an hour, `2026-11-22T13-10s.parquet`, and parts of hours that are not over, in
`parts/`. Columns time_s, node, read, written; rows by time.

`append` adds a part, whole or not at all; `tidy` makes one file of those of an hour that is over, and removes the
oldest beyond a limit. `read` sees each row once at any time, also after a crash in the middle of any of it: a file
names the parts whose rows it has taken over. Hours are UTC's. pyarrow is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from tarazu import durable, locks
from tarazu.errors import BadInput, StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.parts.bursts.traffic.traffic import Traffic, joined, rows

log = logging.getLogger("tarazu.bursts")

VERSION = 2
KEY = b"tarazu"
COLUMNS = ("time_s", "node", "read", "written")
HOUR_S, DAY_S = 3600, 86400
AGAIN = 5
"""Files may go while we look at them: then the directory is read again."""
LAST_S = 253_402_300_799
"""Years have four digits."""
LATE_S = 600.0
"""So long after an hour's end rows of it may come."""

_NAME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d)-([\d.]{1,12})s(?:-(\d{1,12})-(\d{1,12})-[0-9a-f]+)?\.parquet", re.ASCII
)
"""Hour, interval; of a part also the first and the last time of its rows."""


class About(msgspec.Struct, frozen=True):
    """What a file says of itself, in its footer."""

    version: int
    interval_s: Annotated[float, msgspec.Meta(gt=0)]
    replaces: tuple[str, ...] = ()
    """Parts whose rows are here: where one is still there, it was left by a crash."""


class _File(NamedTuple):
    """By its name."""

    path: Path
    hour: str
    interval: str
    first_s: float
    last_s: float


def read(directory: str | Path, start_s: float, end_s: float) -> Iterator[Traffic]:
    """What began in [start_s, end_s), in time order, at most an hour in a chunk. Where the interval was changed, chunks
    of either follow one another by their beginnings. Raises BadInput for a file that cannot be read.
    """
    folder = Path(directory)
    for hour in sorted(
        {file.hour for file in _files(folder) if file.last_s >= start_s and file.first_s < end_s}
    ):
        yield from _of_hour(folder, hour, start_s, end_s)


def _of_hour(folder: Path, hour: str, start_s: float, end_s: float) -> list[Traffic]:
    for _ in range(AGAIN):
        by_interval: dict[str, list[_File]] = defaultdict(list)
        for file in _files(folder):
            if file.hour == hour and file.last_s >= start_s and file.first_s < end_s:
                by_interval[file.interval].append(file)
        try:
            whole = [_load([file.path for file in files]) for files in by_interval.values()]
        except FileNotFoundError:
            continue
        inside = [rows(each, slice(*np.searchsorted(each.time_s, [start_s, end_s]))) for each in whole]
        return sorted((each for each in inside if len(each)), key=lambda each: int(each.time_s[0]))
    raise BadInput(str(folder), "files that stay for a moment", f"{AGAIN} times others")


def span(directory: str | Path) -> tuple[float, float] | None:
    """From when to when there is traffic, in seconds since 1970; None: there is none. Raises BadInput."""
    folder = Path(directory)
    hours = sorted({file.hour for file in _files(folder)})
    if not hours:
        return None
    first, last = (_of_hour(folder, hour, 0.0, float(LAST_S)) for hour in (hours[0], hours[-1]))
    if not first or not last:
        return None
    return float(first[0].time_s[0]), max(float(each.time_s[-1]) + each.interval_s for each in last)


def append(directory: str | Path, traffic: Traffic) -> None:
    """Add rows, in any order. On disk when this returns. Raises StoreError, BadInput."""
    if not len(traffic):
        return
    if not 0 <= int(traffic.time_s.min()) <= int(traffic.time_s.max()) <= LAST_S:
        raise BadInput("traffic", "seconds since 1970", f"{traffic.time_s.min()} and {traffic.time_s.max()}")
    if not 1 <= traffic.interval_s <= DAY_S:
        raise BadInput("traffic", "an interval of a second to a day", f"{traffic.interval_s:g} s")
    traffic = joined(traffic)
    with _locked(Path(directory), fcntl.LOCK_SH) as folder:
        for hour in np.unique(traffic.time_s // HOUR_S).tolist():
            first, last = np.searchsorted(traffic.time_s, [hour * HOUR_S, (hour + 1) * HOUR_S]).tolist()
            of_hour = rows(traffic, slice(first, last))
            times = f"{of_hour.time_s[0]}-{of_hour.time_s[-1]}-{secrets.token_hex(6)}"
            name = f"{_name(hour * HOUR_S)}-{traffic.interval_s:g}s-{times}.parquet"
            _write(folder / "parts" / name, of_hour)


def tidy(directory: str | Path, now_s: float, limit_bytes: int | None = None) -> None:
    """Put together what is over, and remove the oldest beyond the limit. A file that cannot be read is set aside.
    Raises StoreError.
    """
    with _locked(Path(directory), fcntl.LOCK_EX) as folder:
        for part in [*folder.glob(".*.part"), *(folder / "parts").glob(".*.part")]:  # of a crash
            part.unlink(missing_ok=True)
        parts: dict[tuple[str, str], list[Path]] = defaultdict(list)
        for file in _files(folder):
            if file.path.parent != folder and _begin_s(file.hour) + HOUR_S <= now_s - LATE_S:
                parts[file.hour, file.interval].append(file.path)
        for (hour, interval), paths in parts.items():
            _put_together(paths, folder / f"{hour}-{interval}s.parquet")
        if limit_bytes is not None:
            _shrink(folder, limit_bytes)


def size(directory: str | Path) -> int:
    """Bytes that all of it takes."""
    return sum(bytes_ for _, bytes_ in _sizes(Path(directory)))


def _files(folder: Path) -> list[_File]:
    """Parts first: what becomes of them meanwhile is seen after them."""
    files = []
    for path in [*sorted((folder / "parts").glob("*.parquet")), *sorted(folder.glob("*.parquet"))]:
        if match := _NAME.fullmatch(path.name):
            begin_s = _begin_s(match[1])
            times = (float(match[3]), float(match[4])) if match[3] else (begin_s, begin_s + HOUR_S)
            files.append(_File(path, match[1], match[2], *times))
    return files


def _put_together(parts: list[Path], whole: Path) -> None:
    """One file of an hour's parts, which then go; one that cannot be read is set aside. Raises StoreError."""
    paths = [*parts, whole] if whole.exists() else list(parts)
    traffic = None
    while paths and traffic is None:
        try:
            traffic = _load(paths)
        except BadInput as error:
            path = next(path for path in paths if str(path) == error.where)
            log.error("%s: set aside", error)
            path.rename(path.with_suffix(".unreadable"))
            paths.remove(path)
    if traffic is not None:
        _write(whole, traffic, [path.name for path in parts])
    for path in parts:
        path.unlink(missing_ok=True)


def _shrink(folder: Path, limit_bytes: int) -> None:
    """The oldest go, but never the newest."""
    sizes = _sizes(folder)
    total = sum(bytes_ for _, bytes_ in sizes)
    for path, bytes_ in sizes[:-1]:
        if total <= limit_bytes:
            return
        log.info("%s goes: more than %d bytes of traffic (part.bursts.limit)", path.name, limit_bytes)
        path.unlink(missing_ok=True)
        total -= bytes_


def _sizes(folder: Path) -> list[tuple[Path, int]]:
    """Oldest first."""
    sizes = []
    for path in [*(file.path for file in _files(folder)), *folder.glob("**/*.unreadable")]:
        with contextlib.suppress(FileNotFoundError):
            sizes.append((path, path.stat().st_size))
    return sorted(sizes, key=lambda item: (item[0].name[:13], item[0].parent.name == "parts", item[0].name))


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[Path]:
    """Parts are added side by side; files are put together and removed by one process alone. Raises StoreError."""
    try:
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(str(folder), "a directory that can be written", error.strerror) from None
    try:
        locks.need(descriptor, folder, how)
        yield folder
    except OSError as error:
        raise StoreError(str(folder), "a directory that can be written", error.strerror) from None
    finally:
        os.close(descriptor)


def _name(unix_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H", time.gmtime(unix_s))


def _begin_s(hour: str) -> float:
    """Of an hour that may be none: 0."""
    try:
        return float(np.datetime64(f"{hour}:00", "s").astype(np.int64))
    except ValueError:
        return 0.0


def _write(path: Path, traffic: Traffic, replaces: Iterable[str] = ()) -> None:
    """Ascending rows. Raises StoreError."""
    import pyarrow
    from pyarrow import parquet

    about = About(VERSION, traffic.interval_s, tuple(replaces))
    schema = _schema().with_metadata({KEY: msgspec.json.encode(about)})
    used, node = np.unique(traffic.node, return_inverse=True)
    names = pyarrow.array([traffic.nodes[at] for at in used.tolist()], pyarrow.string())
    columns = [
        pyarrow.array(traffic.time_s, pyarrow.int64()),
        pyarrow.DictionaryArray.from_arrays(pyarrow.array(node, pyarrow.int32()), names),
        *(pyarrow.array(column, pyarrow.int64()) for column in (traffic.read, traffic.written)),
    ]
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.Table.from_arrays(columns, schema=schema)
    parquet.write_table(table, sink, compression="zstd", use_dictionary=["time_s", "node"])
    try:
        durable.replace(path, sink.getvalue(), sync_name=True)
    except OSError as error:
        raise StoreError(str(path), "a file that can be written", error.strerror) from None


def _load(paths: Iterable[Path]) -> Traffic:
    """Files of one interval as one: rows by time and node, each once. Raises BadInput for one that is none of ours;
    FileNotFoundError.
    """
    import pyarrow

    tables = {path: _table(path) for path in paths}
    replaced = {name for about, _ in tables.values() for name in about.replaces}
    kept = [table for path, (_, table) in tables.items() if path.name not in replaced]
    table = pyarrow.concat_tables(kept).unify_dictionaries().combine_chunks()
    columns = {name: table[name].combine_chunks() for name in COLUMNS}
    node = columns["node"]
    traffic = Traffic(
        tuple(node.dictionary.to_pylist()),
        next(iter(tables.values()))[0].interval_s,
        np.asarray(columns["time_s"]),
        np.asarray(node.indices.cast(pyarrow.int32())),
        np.asarray(columns["read"]),
        np.asarray(columns["written"]),
    )
    return joined(traffic)


def _table(path: Path) -> tuple[About, Any]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, read_dictionary=["node"]) as file:
            about = msgspec.json.decode((file.schema_arrow.metadata or {}).get(KEY, b""), type=About)
            if about.version != VERSION:
                raise BadInput(str(path), f"version {VERSION}", str(about.version))
            wanted = _schema()
            for field in wanted:
                if (found := file.schema_arrow.field(field.name).type) != field.type:
                    raise BadInput(str(path), f"{field.name} of type {field.type}", str(found)[:200])
            table = file.read(columns=list(COLUMNS)).select(COLUMNS).cast(wanted)
        for name in COLUMNS:
            if table[name].null_count:
                raise BadInput(str(path), f"{name} in each row", "none")
    except FileNotFoundError:
        raise
    except (OSError, LookupError, ValueError, pyarrow.ArrowException, *MALFORMED) as error:
        raise BadInput(str(path), "a Parquet file of traffic", str(error)[:200]) from None
    return about, table


def _schema() -> Any:
    import pyarrow

    long = pyarrow.int64()
    return pyarrow.schema(
        [
            pyarrow.field("time_s", long),
            pyarrow.field("node", pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
            pyarrow.field("read", long),
            pyarrow.field("written", long),
        ]
    )


described(About)
