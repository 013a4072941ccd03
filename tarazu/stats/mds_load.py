"""How busy an MDS is: CPU, memory, LNet, metadata operations, and the jobs that make most of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from heapq import nsmallest
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tarazu.stats import counters, host, job_stats, lnet, reading
from tarazu.stats.params import find, is_mdt

_SAMPLES = re.compile(rb"samples: *([1-9]\d{0,17})\b")
T = TypeVar("T")

BYTES = ("read_bytes", "write_bytes")
"""Rows of `md_stats` that count what other rows have counted."""
COUNTED_TWICE = (
    *BYTES,
    "samedir_rename",
    "crossdir_rename",
    "parallel_rename_file",
    "parallel_rename_dir",
    "rename_trylocks",
)
"""These too: each `rename` is one of the first two, and may be one of the others."""
MAX_JOBS = 10
"""Named: those with most operations."""


class MdsLoad(msgspec.Struct, frozen=True):
    """Over one interval; rates are 0, or absent, in the first."""

    interval_s: float = 0.0
    cpu_load: float = 0.0
    """0-1."""
    memory_load: float = 0.0
    lnet_bytes_per_s: float = 0.0
    operations_per_s: Mapping[str, Mapping[str, float]] = {}
    """MDT → operation → per second."""
    files_free: Mapping[str, int] = {}
    """MDT → inodes left."""
    jobs: tuple[tuple[str, float], ...] = ()
    """(job id, operations per second), most first."""
    unreadable: tuple[str, ...] = ()


class _Sample(NamedTuple):
    clock_s: float
    cpu: host.CpuTimes | None
    lnet: lnet.LnetStats | None
    md_stats: Mapping[str, counters.Stats]
    jobs: Mapping[str, Mapping[str, int]]


class MdsCollector:
    """Statistics of one MDS; on another node only CPU, memory and LNet are found."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._before: _Sample | None = None
        self._failed: set[str] = set()

    def collect(self, clock_s: float) -> MdsLoad:
        """Over the time since the last call. Never raises for an unreadable or malformed source."""
        self._failed = set()
        node = self._guard("host", lambda: host.read(self.root))
        nets = self._each("lnet.stats", lambda path: lnet.parse(reading.text(path)))
        md_stats = self._each("mdt.*.md_stats", lambda path: counters.parse(reading.text(path)))
        files_free = self._each("mdt.*.filesfree", lambda path: counters.whole_number(reading.text(path)))
        jobs = self._each("mdt.*.job_stats", operations)
        now = _Sample(clock_s, node.cpu if node else None, nets.get(""), md_stats, jobs)
        before, self._before = self._before, now
        elapsed_s = clock_s - before.clock_s if before else 0.0
        load = MdsLoad(
            memory_load=node.memory_load if node else 0.0,
            files_free={mdt: free for mdt, free in sorted(files_free.items()) if is_mdt(mdt)},
            unreadable=tuple(sorted(self._failed)),
        )
        if before is None or elapsed_s <= 0:
            return load
        return msgspec.structs.replace(
            load,
            interval_s=elapsed_s,
            cpu_load=now.cpu.load_since(before.cpu) if now.cpu and before.cpu else 0.0,
            lnet_bytes_per_s=now.lnet.bytes_since(before.lnet) / elapsed_s
            if now.lnet and before.lnet
            else 0.0,
            operations_per_s={
                mdt: _rates(stats, before.md_stats[mdt], elapsed_s)
                for mdt, stats in sorted(md_stats.items())
                if mdt in before.md_stats
            },
            jobs=_busiest(jobs, before.jobs, elapsed_s),
        )

    def _each(self, parameter: str, read: Callable[[Path], T]) -> dict[str, T]:
        values = {}
        for device, path in find(self.root, parameter).items():
            if device and not is_mdt(device):
                continue
            value = self._guard(parameter, lambda path=path: read(path))  # type: ignore[misc]
            if value is not None:
                values[device] = value
        return values

    def _guard(self, parameter: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (OSError, ValueError):
            self._failed.add(parameter)
            return None


def params() -> tuple[str, ...]:
    return ("mdt.*.md_stats", "mdt.*.job_stats", "mdt.*.filesfree", *lnet.params(), *host.params())


def operations(path: Path) -> dict[str, int]:
    """Job id → samples of all its rows."""
    by_job: dict[str, int] = {}
    for entry in job_stats.entries(reading.chunks(path, job_stats.MAX_FILE_BYTES)):
        if total := sum(map(int, _SAMPLES.findall(entry))):
            by_job[job_stats.id_text(entry.partition(b"\n")[0])[:128]] = total
            if len(by_job) >= job_stats.MAX_JOBS:
                break
    return by_job


def _rates(now: counters.Stats, before: counters.Stats, elapsed_s: float) -> dict[str, float]:
    rates = {}
    for name, row in now.rows.items():
        old = before.row(name).samples
        if not row.samples or (not old and name in before.unknown):
            continue
        if counters.were_reset(now.start_s, before.start_s, (row.samples,), (old,)):
            old = 0
        if row.samples > old and name not in COUNTED_TWICE:
            rates[name] = (row.samples - old) / elapsed_s
    return rates


def _busiest(
    now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]], elapsed_s: float
) -> tuple[tuple[str, float], ...]:
    totals: dict[str, int] = {}
    for mdt in now.keys() & before.keys():
        for name, more in grown(now[mdt], before[mdt]).items():
            totals[name] = totals.get(name, 0) + more
    return tuple((name, count / elapsed_s) for name, count in busiest(totals))


def grown(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Operations of each job since `before`; one that was dropped when idle, and began anew, counts from 0."""
    more = {name: total - before.get(name, 0) for name, total in now.items()}
    return {name: of if of >= 0 else now[name] for name, of in more.items() if of}


def busiest(jobs: Mapping[str, int], most: int = MAX_JOBS) -> list[tuple[str, int]]:
    """Those of most operations, most first; `jobs`: job id as the file has it → operations."""
    chosen = nsmallest(most, jobs.items(), key=lambda job: (-job[1], job[0]))
    return [(job_stats.unquote(name), count) for name, count in chosen]
