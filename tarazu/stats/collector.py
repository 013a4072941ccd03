"""Reads one server's statistics below a root and turns two readings into an `OssReport`.

Each source stands alone: one that is missing or malformed is left out of the report, named in its
`unreadable`, and logged once until it can be read again.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tarazu.stats import brw_stats, counters, diskstats, host, job_stats, lnet, service
from tarazu.stats.params import find, ost_target
from tarazu.units import KIB, MIB
from tarazu.wire.messages import JobRate, OssReport, OstReport

log = logging.getLogger("tarazu.stats")

MAX_JOBS = 1000
"""Jobs named in one report: those that moved most bytes."""

_FLAGS = ("degraded", "no_create", "readonly")
"""Absent in some versions: then they are 0, and not worth a word."""

T = TypeVar("T")
JobCounts = tuple[float, int, int]
"""(start_time, write_bytes, read_bytes)."""
Jobs = dict[str, dict[str, JobCounts]]
"""Target, for those whose `job_stats` could be read → job id → counts."""


class _Sample(NamedTuple):
    """What the next interval is computed from."""

    taken_s: float
    cpu: host.CpuTimes | None
    lnet: lnet.LnetStats | None
    ost_io: counters.Stats | None
    jobs: Jobs


class Collector:
    """Statistics of one OSS. `collect` is called once per interval, always from one thread."""

    def __init__(self, root: str | Path, oss_name: str) -> None:
        self.root = Path(root)
        self.oss_name = oss_name
        self._sequence = 0
        self._before: _Sample | None = None
        self._failed: dict[str, str] = {}
        self._said: set[str] = set()

    def collect(self, now: float) -> OssReport:
        """Counters and state as they are; rates over the time since the last call (0 in the first).

        `now` is Unix time in seconds. Never raises for an unreadable or malformed source.
        """
        self._failed = {}
        before = self._before
        node = self._guard("host", lambda: host.read(self.root))
        net = self._file("lnet.stats", lnet.parse)
        ost_io = self._file("ost.OSS.ost_io.stats", counters.parse)
        osts = self._osts(ost_io)
        jobs = self._jobs()
        self._before = _Sample(now, node.cpu if node else None, net, ost_io, jobs)
        self._sequence += 1
        elapsed_s = now - before.taken_s if before else 0.0
        return OssReport(
            oss=self.oss_name,
            sequence=self._sequence,
            sent_s=now,
            interval_s=max(0.0, elapsed_s),
            cpu_load=node.cpu.load_since(before.cpu) if node and before and before.cpu else 0.0,
            memory_load=node.memory_load if node else 0.0,
            lnet_bytes_per_s=(
                net.bytes_since(before.lnet) / elapsed_s
                if net and before and before.lnet and elapsed_s > 0
                else 0.0
            ),
            osts=tuple(osts),
            jobs=_job_rates(jobs, before.jobs) if before else (),
            queue_wait_s=_mean_wait_s(ost_io, before.ost_io) if ost_io and before and before.ost_io else 0.0,
            unreadable=self._tell(),
        )

    def _osts(self, ost_io: counters.Stats | None) -> list[OstReport]:
        stats = self._files("obdfilter.*.stats", counters.parse)
        brw = self._files("osd-*.*.brw_stats", brw_stats.parse)
        total = self._files("obdfilter.*.kbytestotal", _number)
        free = self._files("obdfilter.*.kbytesfree", _number)
        avail = self._files("obdfilter.*.kbytesavail", _number)
        files_free = self._files("obdfilter.*.filesfree", _number)
        flags = {name: self._files(f"obdfilter.*.{name}", _number, expected=False) for name in _FLAGS}
        fast = self._files("osd-*.*.nonrotational", _number, expected=False)
        reports = {}
        for device in sorted(total.keys() & free.keys() & avail.keys()):
            target = ost_target(device)
            if target is None:
                continue
            report = OstReport(
                fs_name=target[0],
                index=target[1],
                total_bytes=total[device] * KIB,
                free_bytes=free[device] * KIB,
                avail_bytes=avail[device] * KIB,
                files_free=files_free.get(device, 2**32),
                degraded=bool(flags["degraded"].get(device, 0)),
                no_create=bool(flags["no_create"].get(device, 0)),
                readonly=bool(flags["readonly"].get(device, 0)),
                nonrotational=bool(fast[device]) if device in fast else None,
            )
            reports[device] = _with_counts(report, stats.get(device), brw.get(device))
        return service.with_service(reports, brw, self._devices(), ost_io, stats)

    def _devices(self) -> service.Devices:
        mntdev = self._files("osd-*.*.mntdev", str.strip, expected=False)
        stats = self._file("diskstats", diskstats.parse, expected=False)
        return service.Devices(self.root, mntdev, stats)

    def _jobs(self) -> Jobs:
        jobs: Jobs = {}
        for device, path in self._found("obdfilter.*.job_stats").items():

            def read(path: Path = path) -> dict[str, JobCounts]:
                found: dict[str, JobCounts] = {}
                # Line by line: with many jobs the file is far larger than what is kept of it.
                with path.open(errors="surrogateescape") as lines:
                    for entry in job_stats.parse(lines):
                        written = entry.rows.get("write_bytes", counters.ZERO).sum
                        have_read = entry.rows.get("read_bytes", counters.ZERO).sum
                        if written or have_read:
                            # The same job stands on all targets: one string for all.
                            found[sys.intern(entry.job_id)] = (entry.start_s, written, have_read)
                return found

            counts = self._guard("obdfilter.*.job_stats", read, str(path))
            if counts is not None:
                jobs[device] = counts
        return jobs

    def _file(self, parameter: str, parse: Callable[[str], T], *, expected: bool = True) -> T | None:
        path = self._found(parameter, expected=expected).get("")
        if path is None:
            return None
        return self._guard(parameter, lambda: parse(path.read_text(errors="replace")), str(path))

    def _files(self, parameter: str, parse: Callable[[str], T], *, expected: bool = True) -> dict[str, T]:
        """Device → parsed content of the parameter, for the OSTs where it can be read."""
        values: dict[str, T] = {}
        for device, path in self._found(parameter, expected=expected).items():
            if ost_target(device) is None:
                continue

            def read(path: Path = path) -> T:
                return parse(path.read_text(errors="replace"))

            value = self._guard(parameter, read, str(path))
            if value is not None:
                values[device] = value
        return values

    def _found(self, parameter: str, *, expected: bool = True) -> dict[str, Path]:
        found = self._guard(parameter, lambda: find(self.root, parameter)) or {}
        if not found and expected:
            self._failed.setdefault(parameter, f"nothing found below {self.root}")
        return found

    def _guard(self, parameter: str, read: Callable[[], T], where: str = "") -> T | None:
        try:
            return read()
        except (OSError, ValueError, ImportError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._failed.setdefault(parameter, f"{where}: {reason}" if where else reason)
            return None

    def _tell(self) -> tuple[str, ...]:
        """Log what newly failed and what came back; the names of all that failed now."""
        for parameter in self._failed.keys() - self._said:
            log.warning("%s is left out: %s", parameter, self._failed[parameter])
        for parameter in self._said - self._failed.keys():
            log.info("%s can be read again", parameter)
        self._said = set(self._failed)
        return tuple(sorted(self._failed))


def _number(text: str) -> int:
    stripped = text.strip()
    if not stripped.isdecimal():
        raise ValueError(f"expected a whole number, found {stripped[:40]!r}")
    return int(stripped)


def _with_counts(
    report: OstReport, stats: counters.Stats | None, brw: brw_stats.BrwStats | None
) -> OstReport:
    """`report` with its counters; those of a source that is missing stay 0."""
    if stats:
        written, have_read = stats.row("write_bytes"), stats.row("read_bytes")
        report = msgspec.structs.replace(
            report,
            write_bytes=written.sum,
            write_samples=written.samples,
            write_usecs=stats.row("write").sum,
            read_bytes=have_read.sum,
            read_samples=have_read.samples,
            read_usecs=stats.row("read").sum,
            counters_start_s=stats.start_s,
        )
    if brw:
        report = msgspec.structs.replace(
            report,
            io_size_samples=brw.writes("disk I/O size"),
            io_large_samples=brw.writes("disk I/O size", from_label=MIB),
        )
    return report


def _job_rates(now: Jobs, before: Jobs) -> tuple[JobRate, ...]:
    """Bytes per job since `before`, over all targets that were read both times."""
    totals: dict[str, list[int]] = {}
    for device in now.keys() & before.keys():
        for job_id, (start_s, written, have_read) in now[device].items():
            # An entry that is new, or was dropped when idle and began anew, counts from 0.
            old_start_s, old_written, old_read = before[device].get(job_id, (start_s, 0, 0))
            if counters.were_reset(start_s, old_start_s, (written, have_read), (old_written, old_read)):
                old_written = old_read = 0
            if written > old_written or have_read > old_read:
                total = totals.setdefault(job_id, [0, 0])
                total[0] += written - old_written
                total[1] += have_read - old_read
    largest = sorted(totals.items(), key=lambda item: (-sum(item[1]), item[0]))[:MAX_JOBS]
    return tuple(JobRate(job_id, written, have_read) for job_id, (written, have_read) in largest)


def _mean_wait_s(now: counters.Stats, before: counters.Stats) -> float:
    """Mean time that a request waited in the queue of `ost_io` since `before`, in seconds."""
    new, old = now.row("req_waittime"), before.row("req_waittime")
    if counters.were_reset(now.start_s, before.start_s, new[:2], old[:2]):
        old = counters.ZERO
    samples = new.samples - old.samples
    return (new.sum - old.sum) / samples / 1e6 if samples > 0 else 0.0
