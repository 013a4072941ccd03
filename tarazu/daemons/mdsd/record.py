"""What mdsd keeps of how the system was, so that a run that was slow can be told why (`tarazu why`).

For each OST and span: bytes, operations, in flight, speed, fill, verdict; for each server and span: load, and the jobs
of most bytes and of most operations. Spans are as short as `MOST_BYTES` allows for two days: 1 s at 35 OSTs, 5 s at
480, 60 s at 10,000; beyond, the time that is kept is shorter. In memory is the hour that runs: of 10,000 OSTs on
1,000 servers 9 MB, and a copy of it while somebody asks.
Losing it loses explanations, nothing else. Written and read in a thread; nobody waits for it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tarazu import durable
from tarazu.daemons.mdsd.hour import (
    COLUMNS,
    HOUR_S,
    Hour,
    Kept,
    OstNow,
    ServerNow,
    Sums,
    busiest,
    decode,
    encode,
)
from tarazu.daemons.mdsd.system import System as Reported
from tarazu.model import Ost
from tarazu.stats.counters import were_reset
from tarazu.stats.evidence import io_of, since_base
from tarazu.stats.mds_load import MdsLoad
from tarazu.then import LONGEST_JOB_ID, JobThen
from tarazu.trace.history import file_name
from tarazu.wire import messages
from tarazu.wire.messages import THEN_S, ThenReply, ThenRequest
from tarazu.wire.reports import OssReport, OstReport
from tarazu.wire.transport import Peer

log = logging.getLogger("tarazu.mdsd")

KEEP_S = 2 * 86_400
MOST_BYTES = 256 << 20
"""On disk, unpacked; packed it is a third or less."""
SPANS_S = (1, 5, 10, 30, 60, 300)
WRITTEN_S = 300.0
MOST_OF_SERVER = 3
"""Jobs kept of each server and span by bytes, and as many by operations."""
MOST_REPORTED = 64
"""Jobs of one report that are looked at, by bytes and by operations."""
MOST_NAMED = 1_000
"""Jobs of one server in one span."""
MOST_WAITING = 64
SUFFIX = ".hour"


class Record:
    """`reply` sends an answer; `wake` is called from the thread when one is there. Times `now` are monotonic."""

    def __init__(
        self, directory: str, reply: Callable[[Peer, bytes], None], wake: Callable[[], None]
    ) -> None:
        """`directory`: mdsd's; nothing outlives the daemon where it is empty."""
        self._directory = Path(directory, "then") if directory else None
        self._reply, self._wake = reply, wake
        self._hours: dict[str, Hour] = {}
        self._base: dict[tuple[str, int], OstReport] = {}
        self._jobs: dict[str, dict[str, list[float]]] = {}
        self._sampled_at = self._written_at = time.monotonic()
        self._waiting: set[str] = set()
        self._done: deque[tuple[Peer, str, Future[bytes]]] = deque()
        self._worker = ThreadPoolExecutor(1, "tarazu-then")

    def take_in(self, report: OssReport) -> None:
        """Add up what its jobs did; those of most bytes come first in it."""
        if not report.jobs:
            return
        few = report.jobs[:MOST_REPORTED]
        if len(report.jobs) > MOST_REPORTED:
            few += tuple(sorted(report.jobs, key=lambda job: -job.operations)[:MOST_REPORTED])
        of = self._jobs.setdefault(report.oss, {})
        for job in {job.job_id: job for job in few}.values():
            if len(of) >= MOST_NAMED and job.job_id not in of:
                continue
            sums = of.setdefault(job.job_id[:LONGEST_JOB_ID], [0.0, 0.0])
            sums[0] += job.write_bytes + job.read_bytes
            sums[1] += job.operations

    def next_s(self, now: float) -> float:
        """Seconds until the next sample."""
        return max(0.0, self._sampled_at + self._span_s() - now)

    def _span_s(self) -> int:
        return min((hour.span_s for hour in self._hours.values()), default=SPANS_S[0])

    def look(self, reported: Reported, mds: MdsLoad, now: float) -> None:
        """Answer what is done; take a sample when it is time for one."""
        while self._done:
            peer, message_id, future = self._done.popleft()
            self._waiting.discard(message_id)
            if future.cancelled():
                continue
            if error := future.exception():  # who asked does without
                log.error("a question about the past failed", exc_info=error)
                continue
            if answer := future.result():
                self._reply(peer, answer)
        if now - self._sampled_at < self._span_s():
            return
        self._sampled_at = now
        if reported.may_settle():  # servers are still coming back
            return
        self._sample(reported, mds, now, time.time())
        if now - self._written_at >= WRITTEN_S:
            self._written_at = now
            for hour in self._hours.values():
                self._worker.submit(self._write, hour.kept())

    def _sample(self, reported: Reported, mds: MdsLoad, now: float, now_s: float) -> None:
        names = reported.views.fs_names()
        seen = {fs_name: reported.views.reports(fs_name) for fs_name in names}
        count = sum(map(len, seen.values()))
        for fs_name in names:
            hour = self._hours.get(fs_name)
            if hour is None or not hour.begin_s <= now_s < hour.begin_s + HOUR_S:
                if hour is not None:
                    self._worker.submit(self._write, hour.kept())
                hour = self._hours[fs_name] = Hour(fs_name, int(now_s), span_s(count, reported.interval_s()))
                continue  # its first span has just begun
            view = reported.view(fs_name, now)
            osts = {
                o.index: self._now(fs_name, o, seen[fs_name].get(o.index), hour.span_s) for o in view.osts
            }
            hour.add(
                now_s,
                {index: of for index, of in osts.items() if of is not None},
                self._servers({ost.oss for ost in view.osts}, reported),
                _metadata(mds, fs_name),
            )
        self._base = {(fs, index): report for fs, of in seen.items() for index, report in of.items()}
        self._jobs.clear()

    def _now(self, fs_name: str, ost: Ost, report: OstReport | None, span_s: int) -> OstNow | None:
        base = self._base.get((fs_name, ost.index))
        if report is None or ost.stale:
            return None
        counted = report.write_samples or report.read_samples or (base and base.write_samples)
        written = read = operations = in_flight = None
        if base is not None and counted:
            new = (report.write_bytes, report.read_bytes, report.write_samples, report.read_samples)
            old = (base.write_bytes, base.read_bytes, base.write_samples, base.read_samples)
            if were_reset(report.counters_start_s, base.counters_start_s, new, old):
                old = (0, 0, 0, 0)
            grown = [float(n - o) for n, o in zip(new, old, strict=True)]
            written, read, operations = grown[0], grown[1], grown[2] + grown[3]
            in_flight = _in_flight(report, base, span_s)
        return OstNow(
            ost.oss,
            written,
            read,
            operations,
            in_flight,
            ost.relative_speed,
            ost.fill,
            ost.verdict,
            ost.peak_bytes_per_s,
        )

    def _servers(self, names: set[str], reported: Reported) -> Mapping[str, ServerNow]:
        servers = {}
        for name, (report, _) in reported.views.servers().items():
            if name in names:
                jobs = (JobThen(job, *sums) for job, sums in self._jobs.get(name, {}).items())
                load = max(report.cpu_load, report.memory_load)
                servers[name] = ServerNow(load, report.link_bytes_per_s, busiest(jobs, MOST_OF_SERVER))
        return servers

    def ask(self, peer: Peer, request: ThenRequest, usable_osts: int) -> None:
        """Answer, in a while; nothing where too many ask: they do without."""
        if request.message_id in self._waiting or len(self._waiting) >= MOST_WAITING:
            return
        self._waiting.add(request.message_id)
        now_s = time.time()
        hour = self._hours.get(request.fs_name)
        current = hour.kept() if hour else None
        sums = Sums(request.osts, now_s - min(request.from_ago_s, KEEP_S), now_s - request.to_ago_s)
        too_late = time.monotonic() + THEN_S
        future = self._worker.submit(self._answer, request, sums, current, usable_osts, too_late)

        def done(of: Future[bytes]) -> None:
            self._done.append((peer, request.message_id, of))
            self._wake()

        future.add_done_callback(done)

    def _answer(
        self, request: ThenRequest, sums: Sums, current: Kept | None, usable_osts: int, too_late: float
    ) -> bytes:
        """In the thread; empty as soon as it is too late: who asked is gone, and others wait."""
        files = self._files(request.fs_name)
        if current is not None:
            files = [file for file in files if file[0] < current.begin_s]
        begins = [*(begin_s for begin_s, _ in files), current.begin_s if current else math.inf]
        for (begin_s, path), next_s in zip(files, begins[1:], strict=True):
            if time.monotonic() > too_late:
                return b""
            if begin_s < sums.until_s and begin_s + HOUR_S + SPANS_S[-1] > sums.since_s:
                try:
                    sums.add(decode(path.read_bytes()), next_s)
                except FileNotFoundError:
                    pass
                except (OSError, ValueError) as error:
                    log.warning("%s: expected an hour of the system, found none: %s", path, error)
        if time.monotonic() > too_late:
            return b""
        if current is not None:
            sums.add(current)
        return messages.encode(ThenReply(request.message_id, sums.system(usable_osts)))

    def _files(self, fs_name: str = "") -> list[tuple[int, Path]]:
        """(begin, file), the oldest first; of all file systems without a name."""
        found = []
        for path in self._directory.iterdir() if self._directory and self._directory.is_dir() else ():
            begin, _, rest = path.name.partition("-")
            if begin.isdecimal() and path.suffix == SUFFIX and (not fs_name or rest == _rest(fs_name)):
                found.append((int(begin), path))
        return sorted(found)

    def _write(self, kept: Kept) -> None:
        """In the thread: the hour so far, instead of the one of before; what is too old, or too much, goes."""
        if self._directory is None or not kept.spans:
            return
        with contextlib.suppress(OSError):  # what is lost is learned again
            self._directory.mkdir(mode=0o700, exist_ok=True)
            path = self._directory / f"{kept.begin_s}-{_rest(kept.fs_name)}"
            durable.replace(path, encode(kept), mode=0o600)
            files = self._files()
            sizes = {each: each.stat().st_size for _, each in files}
            left = sum(sizes.values())
            for begin_s, each in files:
                if begin_s < time.time() - KEEP_S - HOUR_S or left > MOST_BYTES:
                    each.unlink(missing_ok=True)
                    left -= sizes[each]

    def close(self) -> None:
        """Write what is in memory."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        for hour in self._hours.values():
            self._write(hour.kept())


def span_s(osts: int, interval_s: float) -> int:
    """The shortest with which two days of so many OSTs fit into `MOST_BYTES`; not shorter than servers report."""
    fitting = [
        span
        for span in SPANS_S
        if span >= min(interval_s, 60.0) - 0.5 and osts * len(COLUMNS) * KEEP_S / span <= MOST_BYTES
    ]
    return fitting[0] if fitting else SPANS_S[-1]


def _rest(fs_name: str) -> str:
    return f"{file_name(fs_name)}{SUFFIX}"


def _in_flight(report: OstReport, base: OstReport, span_s: int) -> float | None:
    """Mean number over the span: the time of all I/Os over its own (Little's law); None where none is timed."""
    usecs, known = 0, False
    for writes in (False, True):
        new, old = io_of(report, writes), io_of(base, writes)
        if new and old and new.source == old.source:
            usecs, known = usecs + since_base(new, old).usecs, True
    return usecs / 1e6 / span_s if known and usecs >= 0 else None


def _metadata(mds: MdsLoad, fs_name: str) -> float | None:
    rates = [sum(of.values()) for mdt, of in mds.operations_per_s.items() if mdt.startswith(f"{fs_name}-MDT")]
    return sum(rates) if rates else None
