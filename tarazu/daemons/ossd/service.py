"""tarazu-ossd: reports the state of one OSS and its OSTs, or of an MDS and its MDTs, to mdsd.

Publishes: an `OssReport` every `ossd.interval_s` (60 s in the paper) to `mdsd.statistics`, and the last one
again as soon as mdsd comes (back), so that a restarted mdsd need not wait for an interval. Follows:
nothing; it reads Lustre's and the node's statistics below `--root`. When mdsd is silent: goes on sampling;
reports are dropped, not queued; ZeroMQ reconnects, and after a refused key tries again. A source that cannot
be read is left out and said once. SIGTERM and SIGINT end it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import time
from collections.abc import Callable

import msgspec

from tarazu import config
from tarazu.daemons.service import Service, Wakeup, parser, run, serve
from tarazu.errors import ConfigError
from tarazu.figures import Histogram
from tarazu.part import InReport, Live, hearers, installed
from tarazu.stats.collector import Collector
from tarazu.units import counted
from tarazu.wire.reports import OssReport

log = logging.getLogger("tarazu.ossd")

NAME = "tarazu-ossd"


class Ossd(Service):
    """All state of the daemon."""

    USED = ("keys.", "ossd.", "mdsd.statistics", "part.")

    def __init__(self, settings: config.Settings, wakeup: Wakeup, name: str = "") -> None:
        """`name`: its host's by default."""
        super().__init__(settings, wakeup)
        self.interval_s = settings.ossd.interval_s
        self.collections = Histogram()
        self.sent = 0
        self.name = name
        self.parts: Live[InReport] = Live(lambda part: part.in_report())
        self.collector = collector_of(settings, name, self.parts)
        self.read_at = 0.0
        """When `last` was read, on the monotonic clock."""
        self.last: OssReport | None = None
        self.transport = self.connect("oss")
        where = hearers(settings)
        self.publisher = self.transport.publisher(*where)
        keyed = "with keys" if self.transport.curve else "without keys"
        log.info(
            "%s publishes to %s (%s) every %g s",
            self.collector.oss_name,
            " and ".join(where),
            keyed,
            self.interval_s,
        )
        self.every(lambda: self.interval_s, self._report)

    def turn(self, now: float) -> None:
        if self.publisher.wait(0.0) and self.last:
            log.info("mdsd is there")
            self._publish(msgspec.structs.replace(self.last, age_s=now - self.read_at), again=True)

    def _look_who_it_is(self) -> None:
        """At boot its name may come later."""
        host = self.name or socket.gethostname()
        if host != self.collector.oss_name:
            log.info("%s is called %s now", self.collector.oss_name, host)
            self.collector.oss_name = host

    def _report(self, begin: float) -> None:
        self._look_who_it_is()
        self.last, self.read_at = self.collector.collect(time.time(), begin), begin
        self.collections.observe(time.monotonic() - begin)
        self._publish(self.last)
        self.manager.status(f"{_targets(self.last)} reported every {self.interval_s:g} s")

    def _publish(self, report: OssReport, again: bool = False) -> None:
        (self.publisher.repeat if again else self.publisher.publish)(report)
        self.sent += 1

    def take_over(self, settings: config.Settings) -> None:
        self.interval_s = settings.ossd.interval_s
        self.collector.exports = settings.ossd.exports


def collector_of(settings: config.Settings, name: str, parts: Live[InReport]) -> Collector:
    def said(of: Collector) -> dict[str, bytes]:
        read = {name: parts.call(name, lambda part: part.read(of)) for name in parts}
        return {name: body for name, body in read.items() if body}

    return Collector(config.root(), name or socket.gethostname(), exports=settings.ossd.exports, parts=said)


def once(settings: config.Settings, name: str, as_json: bool) -> int:
    """Print one report, over an interval of at most a second."""
    collector = collector_of(settings, name, Live(lambda part: part.in_report()))
    collector.collect(time.time(), time.monotonic())
    time.sleep(min(1.0, settings.ossd.interval_s))
    report = collector.collect(time.time(), time.monotonic())
    print(as_json_text(report) if as_json else as_text(report))
    return 0


def as_json_text(report: OssReport) -> str:
    parts = {name: msgspec.msgpack.decode(said) for name, said in report.parts.items()}
    return msgspec.json.encode({**msgspec.structs.asdict(report), "parts": parts}).decode()


def as_text(report: OssReport) -> str:
    """One line for the server, one per OST, one per source that could not be read."""
    lines = [
        f"{report.oss}: CPU {report.cpu_load:.0%}, memory {report.memory_load:.0%}, "
        f"LNet {report.lnet_bytes_per_s / 1e6:.1f} MB/s, {_targets(report)}"
    ]
    if report.router:
        lines.append(
            f"routes {report.router.bytes_per_s / 1e6:.1f} MB/s as {', '.join(report.router.nids) or 'unknown'}"
        )
    lines += [f"router {r.nid} to {r.net} is down" for r in report.routes if not r.up]
    for ost in report.osts:
        flags = [name for name in ("degraded", "no_create", "readonly") if getattr(ost, name)]
        used = 1 - ost.free_bytes / ost.total_bytes if ost.total_bytes else 0.0
        lines.append(
            f"{ost.fs_name}-OST{ost.index:04x}: {used:.1%} of {ost.total_bytes / 1e9:.1f} GB used, "
            + (
                f"written {ost.write_bytes / 1e9:.3f} GB, read {ost.read_bytes / 1e9:.3f} GB"
                if report.counts(ost)
                else "written and read: unknown"
            )
            + (f", timed by {ost.writes.source}" if ost.writes else "")
            + "".join(f", {flag}" for flag in flags)
        )
    for name, said in report.parts.items():
        lines += installed()[name].lines_of(said) if name in installed() else ()
    lines += [f"left out: {parameter}" for parameter in report.unreadable]
    return "\n".join(lines)


def _targets(report: OssReport) -> str:
    return counted(len(report.osts), "OST")


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    if options.interval is not None and not options.interval > 0:
        raise ConfigError("--interval", "a number of seconds above 0", options.interval)
    settings = config.load(options.config)
    settings = config.override(settings, "ossd", interval_s=options.interval)
    settings = config.override(settings, "mdsd", statistics=options.mdsd)
    return config.override(settings, "keys", directory=options.keys)


def part_of(options: argparse.Namespace) -> Callable[[config.Settings, Wakeup, str], Service]:
    """What of this program was asked for: each is a process of its own, with rights of its own."""
    for part in installed().values():
        for option in part.ossd:
            if getattr(options, option):
                made: Callable[[config.Settings, Wakeup, str], Service] = part.in_ossd(option)
                return made
    return Ossd


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(NAME, "Publish the statistics of this OSS to tarazu-mdsd.")
    options.add_argument("--name", default="", help="name of this OSS (default: host name)")
    options.add_argument("--interval", type=float, metavar="SECONDS", help="time between two reports")
    options.add_argument("--mdsd", metavar="ADDRESS", help="statistics address of mdsd, tcp://mds1:5770")
    for part in installed().values():
        for option, what in part.ossd.items():
            options.add_argument(f"--{option}", action="store_true", help=what)
    options.add_argument("--once", action="store_true", help="print one report and end")
    options.add_argument("--json", action="store_true", help="with --once: as JSON")
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)
    if chosen.once:
        return run(NAME, chosen, lambda: once(settings_from(chosen), chosen.name, chosen.json))
    part = part_of(chosen)

    def make(settings: config.Settings, wakeup: Wakeup) -> Service:
        return part(settings, wakeup, chosen.name)

    return serve(NAME, chosen, lambda: settings_from(chosen), make)


if __name__ == "__main__":
    sys.exit(main())
