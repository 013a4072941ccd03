"""A directory of traffic: a file a day, `2026-11-22-10s.parquet`, and parts of days that are not over, in `parts/`.

`append` adds a part, whole or not at all; `tidy` makes one part of those of an hour that is over, one file of those of
a day that is, and removes the oldest beyond a limit. `read` sees each row once at any time, also after a crash in the
middle of any of it: a file names those whose rows it has taken over. Days are UTC's. pyarrow is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tarazu import locks
from tarazu.errors import BadInput, StoreError
from tarazu.parts.bursts.traffic.day_file import DayFile, write
from tarazu.parts.bursts.traffic.merging import Stream, in_time_order, joined, merged, rows
from tarazu.parts.bursts.traffic.traffic import Traffic

log = logging.getLogger("tarazu.bursts")

HOUR_S, DAY_S = 3600, 86400
AGAIN = 5
"""Files may go while we look at them: then the directory is read again."""
FIRST_S, LAST_S = 0, 253_402_300_799
"""Years that have four digits."""

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-([\d.]{1,12})s(?:-(\d{1,12})-[0-9a-f]+)?\.parquet", re.ASCII)
"""Day, interval; of a part also when it begins."""


def read(directory: str | Path, start_s: float, end_s: float) -> Iterator[Traffic]:
    """What began in [start_s, end_s), in chunks of about a million rows, in time order. All have the same `nodes`
    (sorted); a chunk is of whole intervals. Where the interval was changed, chunks of either follow one another by
    their beginnings. Raises BadInput for a file that cannot be read.
    """
    with ExitStack() as stack:
        files = _opened(Path(directory), start_s, end_s, stack)
        nodes = tuple(sorted({name for file in files for name in file.about.nodes}))
        yield from in_time_order(
            merged(Stream(file.first_s, file.chunks(start_s, end_s, nodes)) for file in of_interval)
            for of_interval in _by_interval(files).values()
        )


def span(directory: str | Path) -> tuple[float, float] | None:
    """From when to when there is traffic, in seconds since 1970; None: there is none. Raises BadInput."""
    with ExitStack() as stack:
        files = _opened(Path(directory), -math.inf, math.inf, stack)
        if not files:
            return None
        return float(min(f.first_s for f in files)), max(f.last_s + f.about.interval_s for f in files)


def append(directory: str | Path, traffic: Traffic) -> int:
    """Add rows, in any order; the bytes of what was written. On disk when this returns. Raises StoreError, BadInput."""
    if not len(traffic):
        return 0
    if not FIRST_S <= int(traffic.time_s.min()) <= int(traffic.time_s.max()) <= LAST_S:
        raise BadInput("traffic", "seconds since 1970", f"{traffic.time_s.min()} and {traffic.time_s.max()}")
    if not 1 <= traffic.interval_s <= DAY_S:
        raise BadInput("traffic", "an interval of a second to a day", f"{traffic.interval_s:g} s")
    traffic = joined([with_sorted_nodes(traffic)])
    size = 0
    with _locked(Path(directory), fcntl.LOCK_SH) as folder:
        for day in np.unique(traffic.time_s // DAY_S):
            first, last = np.searchsorted(traffic.time_s, [day * DAY_S, (day + 1) * DAY_S])
            of_day = rows(traffic, slice(int(first), int(last)))
            path = folder / "parts" / _part_name(int(day), of_day.interval_s, int(of_day.time_s[0]))
            size += write(path, [of_day])
    return size


LATE_S = 600.0


def tidy(directory: str | Path, now_s: float, limit_bytes: int | None = None) -> None:
    """Put together what is over (since `LATE_S`: until then rows may come), and remove the oldest beyond the limit.
    A file that cannot be read is set aside. Raises StoreError.
    """
    over_s = now_s - LATE_S
    groups: dict[tuple[str, str, int | None], list[Path]] = {}
    with _locked(Path(directory), fcntl.LOCK_EX) as folder:
        for left in [*folder.glob(".*.part"), *(folder / "parts").glob(".*.part")]:  # of a crash
            left.unlink(missing_ok=True)
        for path in sorted((folder / "parts").glob("*.parquet")):
            if not (match := _NAME.fullmatch(path.name)) or not match[3]:
                continue
            begins = int(match[3]) // HOUR_S
            if _start_of(match[1]) + DAY_S <= over_s:
                groups.setdefault((match[1], match[2], None), []).append(path)
            elif (begins + 1) * HOUR_S <= over_s:
                groups.setdefault((match[1], match[2], begins), []).append(path)
        for (day, interval, hour), paths in groups.items():
            if hour is None:
                whole = folder / f"{day}-{interval}s.parquet"
                _put_together([whole, *paths] if whole.exists() else paths, whole)
            elif len(paths) > 1:
                name = _part_name(_start_of(day) // DAY_S, float(interval), hour * HOUR_S)
                _put_together(paths, folder / "parts" / name)
        if limit_bytes is not None:
            _shrink(folder, limit_bytes)


def size(directory: str | Path) -> int:
    """Bytes that all of it takes."""
    return sum(bytes_ for _, bytes_ in _sizes(Path(directory)))


def with_sorted_nodes(traffic: Traffic) -> Traffic:
    """The same rows; `nodes` sorted, and only those of which there are rows."""
    used = np.unique(traffic.node)
    names = sorted((traffic.nodes[int(index)], int(index)) for index in used)
    place = np.full(len(traffic.nodes) + 1, -1, np.int32)
    for at, (_, index) in enumerate(names):
        place[index] = at
    return Traffic(
        tuple(name for name, _ in names),
        traffic.interval_s,
        traffic.time_s.astype(np.int64, copy=False),
        place[traffic.node],
        traffic.read.astype(np.int64, copy=False),
        traffic.written.astype(np.int64, copy=False),
        traffic.network,
    )


def _opened(folder: Path, start_s: float, end_s: float, stack: ExitStack) -> list[DayFile]:
    """Of what is there those whose days are in the period, without those that another one replaces."""
    for _ in range(AGAIN):
        files: dict[str, DayFile] = {}
        try:
            for path in _paths(folder):
                match = _NAME.fullmatch(path.name)
                day_s = _start_of(match[1]) if match else 0
                begins_s = int(match[3]) if match and match[3] else day_s
                if day_s + DAY_S > start_s and begins_s < end_s:
                    files[path.name] = DayFile(path)
        except FileNotFoundError:
            for file in files.values():
                file.close()
            continue
        for file in files.values():
            stack.callback(file.close)
        replaced = {name for file in files.values() for name in file.about.replaces}
        return [file for name, file in files.items() if name not in replaced]
    raise BadInput(str(folder), "files that stay for a moment", f"{AGAIN} times others")


def _by_interval(files: Iterable[DayFile]) -> dict[float, list[DayFile]]:
    by_interval: dict[float, list[DayFile]] = {}
    for file in files:
        by_interval.setdefault(file.about.interval_s, []).append(file)
    return by_interval


def _paths(folder: Path) -> list[Path]:
    every = [*folder.glob("*.parquet"), *(folder / "parts").glob("*.parquet")]
    return sorted(path for path in every if _NAME.fullmatch(path.name))


def _put_together(paths: list[Path], whole: Path) -> None:
    """One file of several, which then go; one that cannot be read is set aside. Raises StoreError."""
    left = list(paths)
    while True:
        try:
            return _as_one(left, whole)
        except BadInput as error:
            path = next(path for path in left if str(path) == error.where)
            log.error("%s: set aside", error)
            path.rename(path.with_suffix(".unreadable"))
            left.remove(path)


def _as_one(paths: list[Path], whole: Path) -> None:
    """Raises BadInput for one that cannot be read; then all are as they were. Raises StoreError."""
    with ExitStack() as stack:
        files: list[DayFile] = []
        for path in paths:
            files.append(DayFile(path))
            stack.callback(files[-1].close)
        before = {name for file in files for name in file.about.replaces}
        here = [file for file in files if file.path.name not in before]  # the others were left by a crash
        nodes = tuple(sorted({name for file in here for name in file.about.nodes}))
        streams = [Stream(file.first_s, file.chunks(-math.inf, math.inf, nodes)) for file in here]
        replaced = [file.path for file in files if file.path != whole]
        write(whole, merged(streams), [path.name for path in replaced])
    for path in replaced:
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
    for path in [*_paths(folder), *folder.glob("**/*.unreadable")]:
        with contextlib.suppress(FileNotFoundError):
            sizes.append((path, path.stat().st_size))
    return sorted(sizes, key=lambda item: (item[0].name[:10], item[0].parent.name == "parts", item[0].name))


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


def _part_name(day: int, interval_s: float, first_s: int) -> str:
    return f"{_date(day * DAY_S)}-{interval_s:g}s-{first_s}-{secrets.token_hex(6)}.parquet"


def _date(unix_s: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(unix_s))


def _start_of(day: str) -> int:
    """Of a date that may be none: 0."""
    try:
        return int(np.datetime64(day, "s").astype(np.int64))
    except ValueError:
        return 0
