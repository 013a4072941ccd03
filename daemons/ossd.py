"""tarazu-ossd: tells mdsd how one OSS and its OSTs are.

Publishes: an `OssReport` every `ossd.interval_s` (60 s in the paper) to `mdsd.statistics`, and the last one
again as soon as mdsd comes (back), so that a restarted mdsd need not wait for an interval. Follows:
nothing; it reads Lustre's and the node's statistics below `ossd.root`. When mdsd is silent: goes on
sampling; reports are dropped, not queued; ZeroMQ reconnects, and after a refused key tries again. A source
that cannot be read is left out and said once. SIGTERM and SIGINT end it, SIGHUP does nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import socket
import sys
import time

import msgspec

from tarazu import config
from tarazu.daemons.process import Wakeup, parser, run
from tarazu.errors import ConfigError
from tarazu.stats.collector import Collector
from tarazu.wire.messages import OssReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.ossd")

NAME = "tarazu-ossd"


class Ossd:
    """All state of the daemon."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        self.interval_s = settings.ossd.interval_s
        self.wakeup = wakeup
        self.collector = Collector(settings.ossd.root, settings.ossd.name or socket.gethostname())
        self.last: OssReport | None = None
        self.transport = ZmqTransport(
            curve_for("oss", settings.keys.directory, settings.keys.insecure),
            insecure=settings.keys.insecure,
            wake_fd=wakeup.fd,
        )
        self.publisher = self.transport.publisher(*settings.statistics())
        keyed = "with keys" if self.transport.curve else "without keys"
        log.info(
            "%s publishes to %s (%s) every %g s",
            self.collector.oss_name,
            " and ".join(settings.statistics()),
            keyed,
            self.interval_s,
        )

    def loop(self) -> None:
        """Until told to stop. Ticks keep their phase; one that was missed (suspend, overload) is skipped."""
        due = time.monotonic()
        while not self.wakeup.stopping:
            if time.monotonic() >= due:
                self.last = self.collector.collect(time.time())
                self.publisher.publish(self.last)
                missed = math.floor((time.monotonic() - due) / self.interval_s)
                due += (missed + 1) * self.interval_s
            if self.publisher.wait(max(0.0, due - time.monotonic())) and self.last:
                log.info("mdsd is there")
                self.publisher.repeat(self.last)
            self.wakeup.drain()

    def close(self) -> None:
        self.transport.close()


def once(settings: config.Settings, as_json: bool) -> int:
    """Print one report, over an interval of at most a second."""
    collector = Collector(settings.ossd.root, settings.ossd.name or socket.gethostname())
    collector.collect(time.time())
    time.sleep(min(1.0, settings.ossd.interval_s))
    report = collector.collect(time.time())
    print(msgspec.json.encode(report).decode() if as_json else as_text(report))
    return 0


def as_text(report: OssReport) -> str:
    """One line for the server, one per OST, one per source that could not be read."""
    lines = [
        f"{report.oss}: CPU {report.cpu_load:.0%}, memory {report.memory_load:.0%}, "
        f"LNet {report.lnet_bytes_per_s / 1e6:.1f} MB/s, {len(report.osts)} OSTs"
    ]
    for ost in report.osts:
        flags = [name for name in ("degraded", "no_create", "readonly") if getattr(ost, name)]
        used = 1 - ost.free_bytes / ost.total_bytes if ost.total_bytes else 0.0
        lines.append(
            f"{ost.fs_name}-OST{ost.index:04x}: {used:.1%} of {ost.total_bytes / 1e9:.1f} GB used, "
            f"written {ost.write_bytes / 1e9:.3f} GB, read {ost.read_bytes / 1e9:.3f} GB"
            + (f", timed by {ost.writes.source}" if ost.writes else "")
            + "".join(f", {flag}" for flag in flags)
        )
    lines += [f"left out: {parameter}" for parameter in report.unreadable]
    return "\n".join(lines)


def settings_from(options: argparse.Namespace) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    if options.interval is not None and not options.interval > 0:
        raise ConfigError("--interval", "a number of seconds above 0", options.interval)
    settings = config.load(options.config)
    own = {"name": options.name, "interval_s": options.interval, "root": options.root}
    settings = config.override(settings, "ossd", **own)
    settings = config.override(settings, "mdsd", statistics=options.mdsd)
    return config.override(settings, "keys", directory=options.keys)


def main(argv: list[str] | None = None) -> int:
    options = parser(NAME, "Publish the statistics of this OSS to tarazu-mdsd.")
    options.add_argument("--name", help="name of this OSS (default: host name)")
    options.add_argument("--interval", type=float, metavar="SECONDS", help="time between two reports")
    options.add_argument("--mdsd", metavar="ADDRESS", help="statistics address of mdsd, tcp://mds1:5770")
    options.add_argument("--once", action="store_true", help="print one report and end")
    options.add_argument("--json", action="store_true", help="with --once: as JSON")
    chosen = options.parse_args(argv)

    def body() -> int:
        settings = settings_from(chosen)
        if chosen.once:
            return once(settings, chosen.json)
        with Wakeup() as wakeup, contextlib.closing(Ossd(settings, wakeup)) as ossd:
            ossd.loop()
        log.info("stopped")
        return 0

    return run(NAME, chosen, body)


if __name__ == "__main__":
    sys.exit(main())
