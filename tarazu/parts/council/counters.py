"""What a node saw in one interval, from Lustre's own counters: an OSS or a client.

- `oss`: bulk requests (`obdfilter.*.stats`); spatiality by discontiguous pages (`brw_stats`); demand: queued and in
  service, as each request found it (`ost_io.stats`);
- `client`: calls of programs (`llite.*.stats`).

Counters that began anew count from 0; a device that was not there, or could not be read, at one of the two ends counts
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from tarazu.parts.council.pattern import Direction, Observation
from tarazu.stats import brw_stats, counters, reading
from tarazu.stats.brw_stats import READS, WRITES
from tarazu.stats.params import find

T = TypeVar("T")
LOOK_AGAIN_S = 60.0
"""Devices are looked for this often; those that are known are read at each call."""
MAX_PAGES = 2
"""OSTs of which `brw_stats` is read at a time."""
_QUEUE = ("req_qdepth", "req_active")
MIN_KNOWN = 4
"""Requests of which it must be known whether they are discontiguous."""


class _Amounts(NamedTuple):
    """Counters of one device."""

    read_bytes: int = 0
    reads: int = 0
    write_bytes: int = 0
    writes: int = 0
    start_s: float = 0.0

    def since(self, before: _Amounts) -> _Amounts:
        """What came since; all there is where they began anew."""
        read_bytes, reads, write_bytes, writes, start_s = self
        then_read_bytes, then_reads, then_write_bytes, then_writes, then_start_s = before
        read_bytes -= then_read_bytes
        reads -= then_reads
        write_bytes -= then_write_bytes
        writes -= then_writes
        # As `counters.were_reset`, at a third of what it costs: this is done for each OST, each second.
        restarted = start_s > 0 and then_start_s > 0 and start_s != then_start_s
        if not (self[0] and self[2] and before[0] and before[2]):
            # Requests without bytes: those overflowed, and nobody knows how many came.
            if (self[1] and not self[0]) or (then_reads and not then_read_bytes):
                read_bytes, reads = 0, 0
            if (self[3] and not self[2]) or (then_writes and not then_write_bytes):
                write_bytes, writes = 0, 0
        if restarted or read_bytes < 0 or reads < 0 or write_bytes < 0 or writes < 0:
            return self
        return _Amounts(read_bytes, reads, write_bytes, writes)


def _sum(amounts: list[_Amounts]) -> _Amounts:
    """None above what a message can hold."""
    columns = zip(*(a[:4] for a in amounts))
    return _Amounts(*(min(sum(column), counters.MAX_COUNT) for column in columns)) if amounts else _Amounts()


def _amounts(text: str) -> _Amounts:
    return _Amounts(*counters.read_and_written(text))


class Sampler(ABC):
    """Reads one node's counters again and again; an observation is what came between two readings."""

    def __init__(self, root: str | Path) -> None:
        """`root`: the directory below which /proc and /sys are found."""
        self.root = Path(root)
        self._found: dict[str, dict[str, str]] = {}
        self._known: set[str] = set()
        """Files that could be read since they were looked for."""
        self._found_s: float | None = None
        self.amounts: dict[str, _Amounts] = {}
        self._read_s: float | None = None

    def sample(self, now: float) -> Observation | None:
        """What was seen since the call before; `now` in seconds, on a clock that does not jump.

        None at the first call, where no time has passed, and where nothing was read or written. Never raises for an
        unreadable or malformed source.
        """
        before_s, self._read_s = self._read_s, now
        self.look(now)
        seen = self._seen(now - before_s if before_s is not None else 0.0)
        return seen if seen.elapsed_s > 0 and seen.bytes else None

    @abstractmethod
    def _seen(self, elapsed_s: float) -> Observation:
        """What came since the last call; nothing at the first one."""

    def look(self, clock_s: float) -> None:
        """Forget now and then where devices lie: some come, some go."""
        if self._found_s is None or not 0 <= clock_s - self._found_s < LOOK_AGAIN_S:
            self._found, self._known, self._found_s = {}, set(), clock_s

    def files(self, parameter: str) -> dict[str, str]:
        if parameter not in self._found:
            self._found[parameter] = {
                device: str(path) for device, path in find(self.root, parameter).items()
            }
        return self._found[parameter]

    def read(self, path: str | None, parse: Callable[[str], T]) -> T | None:
        """None for what cannot be read."""
        if path is None:
            return None
        try:
            if path in self._known:
                return parse(reading.again(path))
            answer = parse(reading.text(path, reading.SMALL_BYTES))
        except OSError:
            self._found_s = None  # gone, perhaps to come again elsewhere
            return None
        except ValueError:
            self._known.discard(path)
            return None
        self._known.add(path)
        return answer

    def moved(self, parameter: str) -> dict[str, _Amounts]:
        """Of each device that was there before, too."""
        before, now = (
            self.amounts,
            {of: self.read(path, _amounts) for of, path in self.files(parameter).items()},
        )
        self.amounts = {device: amounts for device, amounts in now.items() if amounts is not None}
        return {of: amounts.since(before[of]) for of, amounts in self.amounts.items() if of in before}


class OssSampler(Sampler):
    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self._pages: dict[str, tuple[brw_stats.Pieces, brw_stats.Pieces]] = {}
        self._queue: counters.Stats | None = None

    def _seen(self, elapsed_s: float) -> Observation:
        moved = self.moved("obdfilter.*.stats")
        total = _sum(list(moved.values()))
        queue_before, self._queue = (
            self._queue,
            self.read(self.files("ost.OSS.ost_io.stats").get(""), lambda text: counters.some(text, _QUEUE)),
        )
        read_pages, write_pages = self._discontiguous(moved)
        return Observation(
            elapsed_s,
            Direction(total.read_bytes, total.reads, discontiguous=read_pages),
            Direction(total.write_bytes, total.writes, discontiguous=write_pages),
            _found_waiting(self._queue, queue_before),
        )

    def _discontiguous(self, moved: dict[str, _Amounts]) -> tuple[float, float]:
        """Shares of the reads and writes; −1 where not known.

        Of a few OSTs that do something, as long as they do the same ones: files are striped over many, and the table
        is what costs most to read.
        """
        apart, known = [0, 0], [0, 0]
        paths, before = self.files("osd-*.*.brw_stats"), self._pages
        osts = [ost for ost in self.amounts if ost in paths]
        busy = {ost for ost in osts if ost not in moved or any(moved[ost][:4])}
        # What an OST had counted holds as long as it does nothing.
        self._pages = {ost: before[ost] for ost in osts if ost in before and ost not in busy}
        wanted = sorted(
            (ost for ost in osts if ost not in self._pages),
            key=lambda ost: (ost not in busy, ost not in before),
        )
        for ost in wanted[:MAX_PAGES]:
            path, then = paths[ost], before.get(ost)
            now = self.read(path, brw_stats.pieces)
            if now is None:
                continue
            self._pages[ost] = now
            if then is None:
                continue
            for column in (READS, WRITES):
                if column == READS and "/osd-zfs/" in path:
                    continue  # ZFS takes each of its reads for contiguous, without a look
                since = [n - t for n, t in zip(now[column], then[column])]
                gaps, count = now[column] if min(since) < 0 else since
                apart[column] += gaps
                known[column] += count
        read, write = (a / k if k >= MIN_KNOWN else -1.0 for a, k in zip(apart, known))
        return read, write


def _found_waiting(now: counters.Stats | None, before: counters.Stats | None) -> float:
    """Requests that were queued or in service when one arrived or was begun, on average; 0: not known."""
    if now is None or before is None:
        return 0.0
    waiting = 0.0
    for name in _QUEUE:
        if name in now.unknown | before.unknown:
            continue
        row, then = now.row(name), before.row(name)
        if counters.were_reset(now.start_s, before.start_s, row[:2], then[:2]):
            then = counters.ZERO
        if row.samples > then.samples:
            waiting += (row.sum - then.sum) / (row.samples - then.samples)
    return waiting


class ClientSampler(Sampler):
    def _seen(self, elapsed_s: float) -> Observation:
        total = _sum(list(self.moved("llite.*.stats").values()))
        return Observation(
            elapsed_s, Direction(total.read_bytes, total.reads), Direction(total.write_bytes, total.writes)
        )


Kind = Literal["oss", "client"]
SAMPLERS: dict[Kind, type[Sampler]] = {"oss": OssSampler, "client": ClientSampler}
