"""The system view: the newest report of every OSS, merged into what the allocator looks at."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.model import Oss, Ost, SystemView
from tarazu.stats import mds
from tarazu.stats.moved import UNKNOWN, Moved, moved
from tarazu.stats.params import target_name
from tarazu.stats.slow_osts import SlowOstFinder, SpeedEstimate
from tarazu.stats.usual import Usual
from tarazu.wire.reports import STATISTICS, OssReport, OstReport

LNET_FLOOR_BYTES_PER_S = 12.5e6
"""An LNet rate is never compared with less (100 Mbit/s): else the reports alone would be full load."""

LOAD_REPORTS = 5
"""A server's load is the mean of so many reports: one burst shows in the newest report of one server, and not yet, or
no more, in another's."""

MDS_STATE_INTERVAL_S = 30.0
"""How long what was read on the MDS is kept."""

MAX_TOLD = 200_000
"""Members of all pools of one file system, as a client tells."""
DUPLEX = 2
"""LNet counts what is sent and what is received; a link carries both at once."""
MAX_NAMED = 100
"""Targets with impossible values that are named of one server."""
MAX_INCARNATIONS = 8
"""Starts of one ossd of which the last report is known, so that a late one is seen."""

log = logging.getLogger("tarazu.stats")


class _Server(NamedTuple):
    report: OssReport
    received_s: float
    highest_lnet_bytes_per_s: float
    rates: tuple[tuple[float, float, float], ...]
    """CPU and memory load, LNet bytes/s of the last `LOAD_REPORTS` reports."""
    sequences: Mapping[int, int]
    """Start of its ossd → number of the newest report of that start."""


class _Target(NamedTuple):
    report: OstReport
    oss: str
    received_s: float
    moved: Moved = UNKNOWN
    peak_bytes_per_s: float = 0.0
    """The highest rate at which it wrote so far, whoever served it."""
    counts: bool = True
    """Its counters could be read."""


class Details(NamedTuple):
    """What is known of a target beside its place in the view, for people."""

    timed_by: tuple[str, str]
    """Source of the times of (reads, writes) in its newest report; empty where there is none."""
    also_reported_by: tuple[str, ...]
    """Servers that report it now although another has reported it last."""
    moved: Moved
    """In its server's last interval; nothing is known of a target that is stale."""


class Taken(NamedTuple):
    """A report that was taken in."""

    received_s: float
    """As if it had come when its values were read."""
    seconds: float
    """Since the server's last one; 0: that is not known."""
    is_new: bool = True
    """False: it had come before, or a newer one has."""


class ViewBuilder:
    """Follows reports; `view` is cheap enough to be asked for with every allocation.

    Every time is on one clock of this node that no one sets (in the simulator: its own). Clocks of other nodes count
    for nothing: reports are ordered by their arrival here, those of one ossd by their numbers.

    `mds_root` is the root below which the MDS's own files (pools, `qos_*`) are read; None: nowhere.
    """

    def __init__(
        self,
        stale_after_s: float,
        mds_root: str | Path | None = None,
        usual: Usual | None = None,
    ) -> None:
        """`usual`: what is known of the times of each OST's I/Os from before."""
        self.stale_after_s = stale_after_s
        self.mds_root = mds_root
        self._usual = Usual() if usual is None else usual
        self.finders: dict[str, SlowOstFinder] = {}
        self._servers: dict[str, _Server] = {}
        self._targets: dict[str, dict[int, _Target]] = {}
        """File system → OST index → what is known of it."""
        self.impossible: dict[str, tuple[str, ...]] = {}
        """OSS → targets of its newest report that were left out."""
        self.late: Counter[str] = Counter()
        """OSS → reports that came after a newer one, and were passed over."""
        self._told: dict[str, dict[int, tuple[str, ...]]] = {}
        self._mds = mds.NOTHING
        self._mds_read_s: float | None = None

    def update(self, report: OssReport, received_s: float) -> Taken | None:
        """Take in a report that arrived at `received_s`.

        None, and nothing is changed, for one whose values cannot be. A target whose values cannot be is left out,
        and named in `impossible` until it is reported right again.
        """
        if not _is_plausible(report):
            return None
        before = self._servers.get(report.oss)
        if before and received_s < before.received_s:
            self._clock_was_set_back(received_s)
        received_s -= min(report.age_s, self.stale_after_s)
        sequences = dict(before.sequences) if before else {}
        if report.incarnation:
            newest = sequences.pop(report.incarnation, 0)
            if report.sequence <= newest:
                # The newest one again is what an ossd says to an mdsd that has just come.
                self.late[report.oss] += report.sequence < newest
                return Taken(received_s, 0.0, is_new=False)
            sequences[report.incarnation] = report.sequence
            for oldest in list(sequences)[:-MAX_INCARNATIONS]:
                del sequences[oldest]
        possible = [ost for ost in report.osts if _is_possible(ost)]
        highest = max(before.highest_lnet_bytes_per_s if before else 0.0, report.lnet_bytes_per_s)
        rates = (report.cpu_load, report.memory_load, report.lnet_bytes_per_s)
        earlier = before.rates[-LOAD_REPORTS + 1 :] if before else ()
        self._servers[report.oss] = _Server(report, received_s, highest, (*earlier, rates), sequences)
        seconds = _interval_s(report, received_s, before)
        self._name_impossible(report, possible)
        own = {
            (o.fs_name, o.index): o
            for o in reversed(possible)  # of one that is named twice, the first
            if self._serves(report.oss, o, received_s)
        }
        for (fs_name, index), ost in own.items():
            here = self._targets.setdefault(fs_name, {})
            known, here_moved, counts = here.get(index), UNKNOWN, report.counts(ost)
            if known and known.oss != report.oss:
                # Another server counts from its own beginning.
                self._finder(fs_name).forget(index)
            elif known and seconds and counts and known.counts:
                here_moved = moved(ost, known.report, seconds)
            peak = max(known.peak_bytes_per_s if known else 0.0, here_moved.writing_bytes_per_s or 0.0)
            here[index] = _Target(ost, report.oss, received_s, here_moved, peak, counts)
        # Zeros that stand for "could not be read" must not look like a reset.
        counted = [o for o in own.values() if o.reads or o.writes or report.counts(o)]
        for fs_name in dict.fromkeys(o.fs_name for o in counted):
            self._finder(fs_name).update_server([o for o in counted if o.fs_name == fs_name], received_s)
        return Taken(received_s, seconds)

    def _finder(self, fs_name: str) -> SlowOstFinder:
        if fs_name not in self.finders:
            self.finders[fs_name] = SlowOstFinder(fs_name, self._usual)
        return self.finders[fs_name]

    def _serves(self, oss: str, ost: OstReport, received_s: float) -> bool:
        """Whoever reported a target last serves it: that is how failover shows."""
        target = self._targets.get(ost.fs_name, {}).get(ost.index)
        if target is None or target.oss == oss or received_s >= target.received_s:
            return True
        # Older than what another server said, as one that is sent again to an mdsd that has just come.
        known = self._servers[target.oss].report.osts
        return all((o.fs_name, o.index) != (ost.fs_name, ost.index) for o in known)

    def excuse(self, silence_s: float) -> None:
        """This node listened to nobody for so long, or its clock jumped: that was not the servers' silence."""
        for name, server in self._servers.items():
            self._servers[name] = server._replace(received_s=server.received_s + silence_s)
        for here in self._targets.values():
            for index, target in here.items():
                here[index] = target._replace(received_s=target.received_s + silence_s)

    def _clock_was_set_back(self, now: float) -> None:
        """Nothing was received after `now`: else a server that stops would stay fresh until then."""
        for name, server in self._servers.items():
            self._servers[name] = server._replace(received_s=min(server.received_s, now))
        for targets in self._targets.values():
            for index, target in targets.items():
                targets[index] = target._replace(received_s=min(target.received_s, now))

    def _name_impossible(self, report: OssReport, possible: Sequence[OstReport]) -> None:
        if len(possible) == len(report.osts):
            self.impossible.pop(report.oss, None)
            return
        known = set(map(id, possible))
        named = tuple(target_name(o.fs_name, o.index) for o in report.osts if id(o) not in known)
        for name in set(named) - set(self.impossible.get(report.oss, ())):
            log.warning("%s: %s is left out: it reports impossible values", report.oss, name)
        self.impossible[report.oss] = named[:MAX_NAMED]

    def tell_pools(self, told: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        """What a client sees: file system → pool → OST indices. It counts where the MDS tells us of no pools; the
        newest word stands, and one that is too long is not taken.
        """
        for fs_name, pools in told.items():
            if fs_name in self._targets and sum(map(len, pools.values())) <= MAX_TOLD:
                of_ost: dict[int, list[str]] = {}
                for pool, members in sorted(pools.items()):
                    for index in set(members):
                        of_ost.setdefault(index, []).append(pool)
                self._told[fs_name] = {index: tuple(names) for index, names in of_ost.items()}

    def _pools(self, fs_name: str, state: mds.MdsState, osts: Iterable[int]) -> dict[int, tuple[str, ...]]:
        if any(fs == fs_name for fs, _ in state.pools):
            return {index: state.pools.get((fs_name, index), ()) for index in osts}
        told = self._told.get(fs_name, {})
        return {index: told.get(index, ()) for index in osts}

    def __contains__(self, oss: str) -> bool:
        return oss in self._servers

    def __len__(self) -> int:
        """Servers that have reported."""
        return len(self._servers)

    def fs_names(self) -> list[str]:
        return sorted(self._targets)

    def servers(self) -> dict[str, tuple[OssReport, float]]:
        """OSS name → (its newest report, when that arrived)."""
        return {name: (server.report, server.received_s) for name, server in sorted(self._servers.items())}

    def reports(self, fs_name: str) -> dict[int, OstReport]:
        """OST index → the newest report of it."""
        return {index: target.report for index, target in self._targets.get(fs_name, {}).items()}

    def age_s(self, fs_name: str, now: float) -> float:
        """Age of the oldest report that a view of this file system rests on, stale targets apart."""
        ages = [now - t.received_s for t in self._targets.get(fs_name, {}).values()]
        return max((age for age in ages if age <= self.stale_after_s), default=0.0)

    def view(
        self,
        fs_name: str,
        now: float,
        promised: Mapping[int, int] | None = None,
        written: Mapping[int, int] | None = None,
        taken_s: float | None = None,
    ) -> SystemView:
        """Everything known of `fs_name` at `now`; no OSTs when it was never reported.

        `promised`, `written`: OST index → bytes (the reservation ledger's). `taken_s`: the same moment in Unix time,
        for the view's readers.
        """
        state = self._mds_state(now)
        here = dict(sorted(self._targets.get(fs_name, {}).items()))
        pools = self._pools(fs_name, state, here)
        servers = {index: t.oss for index, t in here.items()}
        # Who is slow beside whom is not for clients to say: on that the pools' keeper acts as root.
        noted = {index: state.pools.get((fs_name, index), ()) for index in here}
        finder = self.finders.get(fs_name)
        speeds = finder.estimates(noted, servers) if finder else {}
        owed, done = promised or {}, written or {}
        osts = tuple(
            self._ost(
                target,
                now,
                pools[index],
                speeds.get(index),
                owed.get(index, 0),
                done.get(index, 0),
            )
            for index, target in here.items()
        )
        names = sorted({ost.oss for ost in osts})
        # A server that was never busy is compared with a tenth of the busiest, not with its own idle noise.
        highest = max((s.highest_lnet_bytes_per_s for s in self._servers.values()), default=0.0)
        floor = max(highest / 10, LNET_FLOOR_BYTES_PER_S)
        osses = tuple(self._oss(name, floor) for name in names)
        common = finder.common() if finder else 1.0
        return SystemView(
            fs_name,
            now if taken_s is None else taken_s,
            osts,
            osses,
            common_relative=common,
            spills=_spilling(fs_name, state, osts),
        )

    def _ost(
        self,
        target: _Target,
        now: float,
        pools: tuple[str, ...],
        speed: SpeedEstimate | None,
        promised_bytes: int,
        written_bytes: int,
    ) -> Ost:
        report = target.report
        return Ost(
            index=report.index,
            oss=target.oss,
            total_bytes=report.total_bytes,
            free_bytes=report.free_bytes,
            avail_bytes=report.avail_bytes,
            files_free=report.files_free,
            promised_bytes=promised_bytes,
            written_bytes=written_bytes,
            write_bytes_per_s=speed.write_bytes_per_s if speed else None,
            write_latency_s=speed.write_latency_s if speed else None,
            relative_speed=speed.relative if speed else None,
            speed_source=speed.source if speed else "",
            own_relative=speed.own_relative if speed else None,
            slow_score=speed.score if speed else 0.0,
            slow_why=speed.why if speed else "",
            peak_bytes_per_s=target.peak_bytes_per_s or None,
            degraded=report.degraded,
            no_create=report.no_create,
            readonly=report.readonly,
            stale=now - target.received_s > self.stale_after_s,
            pools=pools,
        )

    def _oss(self, name: str, lnet_floor: float) -> Oss:
        server = self._servers[name]
        full = max(server.highest_lnet_bytes_per_s, lnet_floor)
        cpu, memory, lnet = (sum(of) / len(of) for of in zip(*server.rates, strict=True))
        return Oss(name, cpu, memory, min(1.0, lnet / full), _link(server.report))

    def details(self, fs_name: str, now: float) -> dict[int, Details]:
        """OST index → what people may want to know of it."""
        listing: dict[int, list[str]] = {}
        for name, server in sorted(self._servers.items()):
            if now - server.received_s <= 1.5 * max(1.0, server.report.interval_s):
                for ost in server.report.osts:
                    if ost.fs_name == fs_name:
                        listing.setdefault(ost.index, []).append(name)
        return {
            index: Details(
                (
                    t.report.reads.source if t.report.reads else "",
                    t.report.writes.source if t.report.writes else "",
                ),
                tuple(name for name in dict.fromkeys(listing.get(index, ())) if name != t.oss),
                t.moved if now - t.received_s <= self.stale_after_s else UNKNOWN,
            )
            for index, t in self._targets.get(fs_name, {}).items()
        }

    def qos(self, fs_name: str, now: float) -> dict[str, Mapping[str, str]]:
        """`lod` device of the file system → its `qos_*` parameters; empty where mdsd is not on its MDS."""
        parameters = self._mds_state(now).qos
        return {
            device: of for device, of in sorted(parameters.items()) if device.startswith(f"{fs_name}-MDT")
        }

    def _mds_state(self, now: float) -> mds.MdsState:
        if self.mds_root is None:
            return self._mds
        if self._mds_read_s is None or not 0 <= now - self._mds_read_s < MDS_STATE_INTERVAL_S:
            self._mds = mds.read(self.mds_root)
            self._mds_read_s = now
        return self._mds


def _spilling(fs_name: str, state: mds.MdsState, osts: Sequence[Ost]) -> dict[str, str]:
    """Pool → where its new files go. One that what is promised will fill counts as full: Lustre will find it so."""
    to = {}
    for (of, pool), spill in state.spills.items():
        members = [o for o in osts if pool in o.pools and o.active]
        total = sum(o.total_bytes for o in members)
        taken = total - sum(o.avail_bytes for o in members) + sum(o.promised_bytes for o in members)
        if of == fs_name and (spill.active or (total and taken >= total * spill.threshold_pct / 100)):
            to[pool] = spill.target
    return {pool: _last(to, pool) for pool in to}


def _last(to: Mapping[str, str], pool: str) -> str:
    """A target may spill over, too."""
    for _ in to:
        pool = to.get(pool, pool)
    return pool


def _interval_s(report: OssReport, received_s: float, before: _Server | None) -> float:
    """Over how long the counters of a report grew since the one before; 0: that is not known."""
    if before is None:
        return 0.0
    last = before.report
    follows = report.incarnation == last.incarnation and report.sequence == last.sequence + 1
    return report.interval_s if follows else max(0.0, received_s - before.received_s)


def _is_plausible(report: OssReport) -> bool:
    """One report with a NaN or a negative rate must not spoil what the allocator computes for all."""
    rates = [report.interval_s, report.age_s]
    if report.router:
        rates += [report.router.bytes_per_s, report.router.messages_per_s]
    declared = all(
        0 <= (value := getattr(report, name)) <= of.most and value < math.inf
        for name, of in STATISTICS.items()
        if of.needed
    )
    return declared and all(0 <= rate < math.inf for rate in rates)


def _link(report: OssReport) -> float:
    """Bytes/s of its network; 0 where that is not known, or less than what it moves."""
    speed = report.link_bytes_per_s
    return speed if math.isfinite(speed) and speed >= report.lnet_bytes_per_s / DUPLEX else 0.0


def _is_possible(ost: OstReport) -> bool:
    """Nor must one target, whose server and neighbours may well be right."""
    counts = (ost.write_bytes, ost.write_samples, ost.write_usecs, ost.read_bytes, ost.files_free)
    ios = [io for io in (ost.reads, ost.writes) if io]
    return (
        0 <= ost.index < 2**16
        and 0 <= ost.avail_bytes <= ost.total_bytes
        and 0 <= ost.free_bytes <= ost.total_bytes
        and ost.total_bytes > 0
        and min(counts) >= 0
        and math.isfinite(ost.counters_start_s)
        and 0 <= ost.waiting_s < math.inf
        and ost.waiting_ios >= 0
        and all(
            min(io.ios, io.bytes, io.usecs, io.flight_sum, io.flight_samples) >= 0
            and math.isfinite(io.start_s)
            for io in ios
        )
    )
