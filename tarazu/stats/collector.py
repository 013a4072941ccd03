"""Reads one server's statistics below a root and turns two readings into an `OssReport`.

Each source stands alone: one that is missing or malformed is left out of the report, named in its
`unreadable`, and logged once until it can be read again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tarazu.stats import (
    brw_stats,
    counters,
    diskstats,
    host,
    job_stats,
    lnet,
    reading,
    routing,
    service,
)
from tarazu.stats.params import PARAMETERS, barred, find, find_exports, is_mdt, ost_target
from tarazu.stats.rates import MAX_FILES, Export, JobRates, Seen, client_rates, exported
from tarazu.stats.service import NOTHING, Watch
from tarazu.units import KIB, MIB
from tarazu.wire.bounds import MAX_ID_CHARACTERS
from tarazu.wire.reports import OssReport, OstReport, RouterLoad

log = logging.getLogger("tarazu.stats")

_FLAGS = ("degraded", "no_create", "readonly")
"""Absent in some versions: then they are 0."""

T = TypeVar("T")
_Exports = dict[Export, Seen]


class _Sample(NamedTuple):
    """What the next interval is computed from."""

    clock_s: float
    cpu: host.CpuTimes | None
    lnet: lnet.LnetStats | None
    ost_io: counters.Stats | None
    exports: _Exports


class Collector:
    """Statistics of one OSS. `collect` is called once per interval, always from one thread.

    `exports`: also those of each client; `parts`: what parts say beside it, read by the methods without an underscore.
    """

    def __init__(
        self,
        root: str | Path,
        oss_name: str,
        *,
        exports: bool = False,
        parts: Callable[[Collector], Mapping[str, bytes]] = lambda _: {},
    ) -> None:
        self.root = Path(root)
        self._here = self.root == Path("/")
        self.oss_name = oss_name
        self.exports = exports
        self.parts = parts
        self._incarnation = secrets.randbits(62) + 1
        self._sequence = 0
        self._before: _Sample | None = None
        self._jobs = JobRates()
        self._watch = Watch()
        self._failed: dict[str, str] = {}
        self._said: set[str] = set()
        self._no_osts = False
        """An LNet router without targets, or an MDS: nothing is missing where OSTs would be."""

    def collect(self, now: float, clock_s: float | None = None) -> OssReport:
        """Counters and state as they are; rates over the time since the last call (0 in the first).

        `now` is Unix time in seconds, which may jump; `clock_s` is on a clock that does not (`now` where there is
        none). Never raises for an unreadable or malformed source.
        """
        self._failed = {}
        before = self._before
        clock_s = now if clock_s is None else clock_s
        node = self.guard("host", lambda: host.read(self.root))
        net = self._file("lnet.stats", lnet.parse)
        routes = self._file("lnet.routes", str) or ""
        mds = any(is_mdt(device) for device in find(self.root, "mdt.*.md_stats"))
        self._no_osts = (mds or routing.is_routing(routes)) and not self._has_osts()
        ost_io = self._file("ost.OSS.ost_io.stats", counters.parse)
        osts = self._osts(ost_io)
        self._read_jobs()
        jobs = self._jobs.take()
        parts = dict(self.parts(self))
        exports = self._read_exports() if self.exports else {}
        self._before = _Sample(clock_s, node.cpu if node else None, net, ost_io, exports)
        self._sequence += 1
        elapsed_s = max(0.0, clock_s - before.clock_s) if before else 0.0
        known = self.guard("lnet.routes", lambda: routing.parse_routes(routes)) or ()
        nids = self._file("lnet.nis", routing.parse_nis) if self._here or routing.is_routing(routes) else ()
        router = self._router(routes, nids or (), net, before, elapsed_s)
        return OssReport(
            oss=self.oss_name,
            sequence=self._sequence,
            sent_s=now,
            interval_s=elapsed_s,
            cpu_load=node.cpu.load_since(before.cpu) if node and before and before.cpu else 0.0,
            memory_load=node.memory_load if node else 0.0,
            lnet_bytes_per_s=(
                net.bytes_since(before.lnet) / elapsed_s
                if net and before and before.lnet and elapsed_s > 0
                else 0.0
            ),
            osts=tuple(osts),
            jobs=jobs,
            queue_wait_s=_mean_wait_s(ost_io, before.ost_io) if ost_io and before and before.ost_io else 0.0,
            unreadable=self._tell(),
            clients=client_rates(exports, before.exports) if before else (),
            incarnation=self._incarnation,
            router=router,
            routes=known,
            link_bytes_per_s=host.link_bytes_per_s(nids) if self._here and nids else 0.0,
            parts=parts,
        )

    def _has_osts(self) -> bool:
        return any(ost_target(device) for device in find(self.root, "obdfilter.*.kbytestotal"))

    def _router(
        self,
        routes: str,
        nids: tuple[str, ...],
        net: lnet.LnetStats | None,
        before: _Sample | None,
        elapsed_s: float,
    ) -> RouterLoad | None:
        if net is None or not routing.is_routing(routes):
            return None
        return routing.load(nids, net, before.lnet if before else None, elapsed_s)

    def _osts(self, ost_io: counters.Stats | None) -> list[OstReport]:
        stats = self.files("obdfilter.*.stats", counters.parse)
        brw = self.files("osd-*.*.brw_stats", brw_stats.parse)
        total = self.files("obdfilter.*.kbytestotal", counters.whole_number)
        free = self.files("obdfilter.*.kbytesfree", counters.whole_number)
        avail = self.files("obdfilter.*.kbytesavail", counters.whole_number)
        files_free = self.files("obdfilter.*.filesfree", counters.whole_number)
        flags = {name: self.files(f"obdfilter.*.{name}", counters.whole_number) for name in _FLAGS}
        fast = self.files("osd-*.*.nonrotational", counters.whole_number)
        reports: dict[str, OstReport] = {}
        seen = set()
        for device in sorted(total.keys() & free.keys() & avail.keys()):
            target = ost_target(device)
            # One that appears under two names (`-OST0001`, `-OST00001`) counts once.
            if target is None or target in seen or len(target[0]) > MAX_ID_CHARACTERS:
                continue
            seen.add(target)
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
        devices = self._devices()
        served = dict(zip(reports, service.with_service(reports, brw, devices, ost_io, stats), strict=True))
        waiting = self._watch.look(served, {ost: devices.own(ost) for ost in served})
        return [
            msgspec.structs.replace(report, waiting_s=waiting[ost].seconds, waiting_ios=waiting[ost].ios)
            if waiting.get(ost, NOTHING).seconds
            else report
            for ost, report in served.items()
        ]

    def _devices(self) -> service.Devices:
        mntdev = self.files("osd-*.*.mntdev", str.strip)
        stats = self._file("diskstats", diskstats.parse)
        return service.Devices(self.root, mntdev, stats)

    def _read_jobs(self) -> None:
        for device, path in self.found("obdfilter.*.job_stats").items():

            def read(device: str = device, path: Path = path) -> int:
                return self._jobs.add(device, reading.chunks(path, job_stats.MAX_FILE_BYTES))

            self.guard("obdfilter.*.job_stats", read, str(path))

    def _read_exports(self) -> _Exports:
        parameter = "obdfilter.*.exports.*.stats"
        paths = self.guard(parameter, lambda: find_exports(self.root)) or {}
        if len(paths) > MAX_FILES:
            self._failed.setdefault(parameter, f"expected at most {MAX_FILES} exports, found {len(paths)}")
        exports: _Exports = {}
        for (device, nid), path in list(paths.items())[:MAX_FILES]:

            def read(path: Path = path) -> counters.Stats:
                return counters.parse(reading.text(path))

            stats = self.guard(parameter, read, str(path))
            if stats is not None and len(nid) <= MAX_ID_CHARACTERS:
                exports[device, nid] = exported(stats)
        return exports

    def _file(self, parameter: str, parse: Callable[[str], T]) -> T | None:
        path = self.found(parameter).get("")
        return self.guard(parameter, lambda: parse(reading.text(path)), str(path)) if path else None

    def files(
        self,
        parameter: str,
        parse: Callable[[str], T],
        target: Callable[[str], tuple[str, int] | None] = ost_target,
    ) -> dict[str, T]:
        """Device → parsed content of the parameter, for the targets where it can be read."""
        values: dict[str, T] = {}
        for device, path in self.found(parameter).items():
            if target(device) is None:
                continue

            def read(path: Path = path) -> T:
                return parse(reading.text(path))

            value = self.guard(parameter, read, str(path))
            if value is not None:
                values[device] = value
        return values

    def found(self, parameter: str) -> dict[str, Path]:
        """Device → file; a parameter that is expected and not there is named among what could not be read."""
        paths = self.guard(parameter, lambda: find(self.root, parameter)) or {}
        expected = PARAMETERS[parameter].expected and not (
            self._no_osts and PARAMETERS[parameter].role == "oss"
        )
        if not paths and expected:
            closed = barred(self.root, parameter)
            self._failed.setdefault(
                parameter,
                f"{closed}: no permission" if closed else f"nothing found below {self.root}",
            )
        return paths

    def guard(self, parameter: str, read: Callable[[], T], where: str = "") -> T | None:
        """What `read` gives; None: it could not, which is named so."""
        try:
            return read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._failed.setdefault(parameter, f"{where}: {reason}" if where else reason)
            return None

    def failed(self, parameter: str) -> bool:
        """Whether something of it could not be read this time."""
        return parameter in self._failed

    def _tell(self) -> tuple[str, ...]:
        """Log what newly failed and what came back; the names of all that failed now."""
        for parameter in self._failed.keys() - self._said:
            log.warning("%s is left out: %s", parameter, self._failed[parameter])
        for parameter in self._said - self._failed.keys():
            log.info("%s can be read again", parameter)
        self._said = set(self._failed)
        return tuple(sorted(self._failed))


def _with_counts(
    report: OstReport, stats: counters.Stats | None, brw: brw_stats.BrwStats | None
) -> OstReport:
    """`report` with its counters; those of a source that is missing stay 0."""
    if stats:
        written, have_read = (
            # Samples without bytes are what nobody knows (`stats.moved`).
            counters.Counter(max(row.samples, 1)) if name in stats.unknown else row
            for name in ("write_bytes", "read_bytes")
            for row in (stats.row(name),)
        )
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
            io_size_samples=min(brw.writes("disk I/O size"), counters.MAX_COUNT),
            io_large_samples=min(brw.writes("disk I/O size", from_label=MIB), counters.MAX_COUNT),
        )
    return report


def _mean_wait_s(now: counters.Stats, before: counters.Stats) -> float:
    """Mean time that a request waited in the queue of `ost_io` since `before`, in seconds."""
    if "req_waittime" in now.unknown | before.unknown:
        return 0.0
    new, old = now.row("req_waittime"), before.row("req_waittime")
    if counters.were_reset(now.start_s, before.start_s, new[:2], old[:2]):
        old = counters.ZERO
    samples = new.samples - old.samples
    return (new.sum - old.sum) / samples / 1e6 if samples > 0 else 0.0
