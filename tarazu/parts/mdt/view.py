"""The MDTs of all file systems as their servers report them: the newest report of each, its rates, its speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tarazu.parts.mdt.messages import MAX_MDTS, MdtReport, MdtReports
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.mdt.speed import Did, Judged, compare, did
from tarazu.stats.counters import were_reset
from tarazu.stats.params import mdt_name

STALE = "its server is silent"
MAX_FILE_SYSTEMS = 64
"""Names that nobody has must not fill the memory."""
LEAST_S = 1e-3
"""Between two reports: less is no time over which anything is counted."""


class MdtDetails(NamedTuple):
    """What is known of an MDT beside its place in the view, for people."""

    operations: Mapping[str, tuple[float, float | None]] | None
    """Operation → (per second, mean seconds where it is timed) in its server's last interval; None: not known."""
    jobs: tuple[tuple[str, float], ...]
    """(job id, operations per second), most first."""


class _Mdt(NamedTuple):
    report: MdtReport
    server: str
    received_s: float
    did: Did | None = None
    """None: in the last interval, not known."""
    judged: Judged = Judged()
    counts: bool = True
    """Its counters could be read."""


class MdtViews:
    """Times on one clock that does not jump."""

    def __init__(self) -> None:
        self._mdts: dict[str, dict[int, _Mdt]] = {}
        self._named: dict[str, frozenset[tuple[str, int]]] = {}
        """Server → (file system, MDT index) of its newest report."""

    def fs_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._mdts))

    def update(self, server: str, said: MdtReports, received_s: float, seconds: float) -> list[str]:
        """Take in a server's; the names of those whose values cannot be, and of those that are too many. `seconds`
        since its last report, 0: not known.
        """
        taken: dict[tuple[str, int], MdtReport] = {}
        amiss = []
        for of in said.mdts:
            here = self._mdts.get(of.fs_name, {})
            room = len(here) < MAX_MDTS if here else len(self._mdts) < MAX_FILE_SYSTEMS
            if not _is_possible(of) or (of.index not in here and not room):
                amiss.append(mdt_name(of.fs_name, of.index))
            elif self._serves(server, of, received_s):
                taken.setdefault((of.fs_name, of.index), of)
        self._named[server] = frozenset((of.fs_name, of.index) for of in said.mdts)
        for (fs_name, index), of in taken.items():
            here = self._mdts.setdefault(fs_name, {})
            known, done, judged = here.get(index), None, Judged()
            counts = said.counts(of)
            if known and known.server == server:
                judged = known.judged
                if counts and known.counts:
                    done = _did(of, known.report, seconds, received_s)
            here[index] = _Mdt(of, server, received_s, done, judged, counts)
        for fs_name in {fs_name for fs_name, _ in taken}:
            self._judge(fs_name, {index for fs, index in taken if fs == fs_name}, received_s)
        return amiss

    def _judge(self, fs_name: str, indices: Iterable[int], now: float) -> None:
        here = self._mdts[fs_name]
        fresh = {
            i: m.did for i, m in here.items() if m.did and now - m.received_s <= 2.5 * max(1.0, m.did.seconds)
        }
        servers = {i: m.server for i, m in here.items()}
        for index in indices:
            if index in fresh:
                judged = here[index].judged.take(now, compare(index, fresh, servers))
                here[index] = here[index]._replace(judged=judged)

    def _serves(self, server: str, of: MdtReport, received_s: float) -> bool:
        """As `ViewBuilder` for OSTs: whoever reported it last serves it."""
        known = self._mdts.get(of.fs_name, {}).get(of.index)
        if known is None or known.server == server or received_s >= known.received_s:
            return True
        return (of.fs_name, of.index) not in self._named.get(known.server, ())

    def excuse(self, silence_s: float) -> None:
        """Nobody was listened to for so long: that was not the servers' silence."""
        for here in self._mdts.values():
            for index, mdt in here.items():
                here[index] = mdt._replace(received_s=mdt.received_s + silence_s)

    def view(self, fs_name: str, now: float, stale_after_s: float) -> tuple[Mdt, ...]:
        """Sorted by index."""
        return tuple(
            _model(mdt, now, stale=now - mdt.received_s > stale_after_s)
            for _, mdt in sorted(self._mdts.get(fs_name, {}).items())
        )

    def details(self, fs_name: str, now: float, stale_after_s: float) -> dict[int, MdtDetails]:
        """MDT index → what people may want to know of it."""
        found = {}
        for index, mdt in self._mdts.get(fs_name, {}).items():
            done = mdt.did if now - mdt.received_s <= stale_after_s else None
            rates = jobs = None
            if done:
                rates = {
                    name: (count / done.seconds, usecs / count / 1e6 if usecs else None)
                    for name, (count, usecs) in done.rows.items()
                }
                jobs = tuple((job.job_id, job.operations / done.seconds) for job in mdt.report.jobs)
            found[index] = MdtDetails(rates, jobs or ())
        return found


def _did(now: MdtReport, before: MdtReport, seconds: float, received_s: float) -> Did | None:
    """None where the counters began anew, or nobody counted."""
    if seconds < LEAST_S:
        return None
    old = {of.name: (of.count, of.usecs) for of in before.operations}
    new = {of.name: (of.count, of.usecs) for of in now.operations}
    names = [n for n in old.keys() | new.keys() if old.get(n, (1,))[0] and new.get(n, (1,))[0]]
    # Those that are not timed, as in 2.12, or whose times overflowed, have operations and no time.
    timed = [
        name
        for name in names
        if all(bool(of[0]) == bool(of[1]) for of in (new.get(name, (0, 0)), old.get(name, (0, 0))))
    ]
    for at in (0, 1):
        numbers = ([of.get(name, (0, 0))[at] for name in (timed if at else names)] for of in (new, old))
        if were_reset(now.counters_start_s, before.counters_start_s, *numbers):
            return None
    rows = {}
    for name in new.keys() & names:
        (count, usecs), former = new[name], old.get(name, (0, 0))
        if count > former[0]:
            rows[name] = (count - former[0], usecs - former[1] if name in timed else 0)
    return did(received_s, seconds, rows)


def _model(mdt: _Mdt, now: float, *, stale: bool) -> Mdt:
    report = mdt.report
    known = Mdt(
        index=report.index,
        server=mdt.server,
        total_bytes=report.total_bytes,
        avail_bytes=report.avail_bytes,
        files_total=report.files_total,
        files_free=report.files_free,
        speed_why=STALE,
        stale=stale,
        no_create=report.no_create,
        readonly=report.readonly,
    )
    if stale:
        return known
    speed = mdt.judged.now(now)
    creates, usecs = mdt.did.creates if mdt.did else (0, 0)
    return msgspec.structs.replace(
        known,
        creates_per_s=creates / mdt.did.seconds if mdt.did else 0.0,
        create_s=usecs / creates / 1e6 if usecs else None,
        operations_per_s=mdt.did.operations / mdt.did.seconds if mdt.did else 0.0,
        relative_speed=speed.share,
        speed_why=speed.why,
    )


def _is_possible(mdt: MdtReport) -> bool:
    return (
        0 <= mdt.index < 1 << 16
        and 0 <= mdt.avail_bytes <= mdt.total_bytes
        and mdt.total_bytes > 0
        and 0 <= mdt.files_free <= mdt.files_total
        and math.isfinite(mdt.counters_start_s)
        and all(of.count >= 0 and of.usecs >= 0 for of in mdt.operations)
        and all(job.operations >= 0 for job in mdt.jobs)
    )
