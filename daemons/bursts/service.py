"""tarazu-burstd: keeps what each compute node moved, whose job ran there, and what is known of applications.

Follows: `OssReport`s of OSSs with `ossd.exports` (bound at `bursts.statistics`), and Slurm (sacct, scontrol), which is
asked in a thread. Publishes nothing; Slurm's plugin and `tarazu bursts` ask it. When an OSS is silent its clients'
traffic is missing; when Slurm is, jobs are learned once it answers. Kept are a file a day of traffic, the jobs, and
applications' history, below `bursts.directory`, written beside the loop: a kill loses what came since the last writing
(`service.SAVE_S`). SIGTERM and SIGINT end it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
from typing import Any, Protocol

import msgspec

from tarazu import config
from tarazu.daemons.bursts.kept import Kept
from tarazu.daemons.process import Reread, Wakeup, parser, run
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import StoreError
from tarazu.wire.said import SaidOnce
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.bursts")

NAME = "tarazu-burstd"
USED = ("keys.", "bursts.", "forwarding.nids", "run.stop_file", "metrics.bursts")
AT_ONCE = 256
"""So many reports, then all else has its turn."""
LOOK_S = 0.5
"""So often at least each part has its turn."""
STATUS_S = 5.0


class Part(Protocol):
    """What shares the loop: it is called often, and returns at once."""

    def look(self, now: float) -> None:
        """Once a turn; `now` is on the monotonic clock."""

    def take_over(self, settings: config.Settings) -> None:
        """Settings were read again."""

    def status(self) -> dict[str, Any]:
        """How it is, as plain values."""

    def close(self) -> None: ...


class BurstService:
    """All state of the daemon."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup, reread: Reread | None = None) -> None:
        """Raises ConfigError, BadInput, StoreError, WireError; Unavailable where there is another one."""
        self.settings = settings
        self.wakeup = wakeup
        self.reread = reread
        self.manager = ServiceManager()
        self.started = time.monotonic()
        self.name = socket.gethostname()
        self._said = SaidOnce(log)
        self._status_at = self.started - STATUS_S
        self.kept = Kept(settings.bursts.directory)
        self._claim = self.kept.claim()
        self.parts: dict[str, Part] = {}
        """In the order of their turns."""
        self.transport = ZmqTransport(
            curve_for("server", settings.keys.directory, settings.keys.insecure),
            insecure=settings.keys.insecure,
            wake_fd=wakeup.fd,
        )
        address = settings.bursts.statistics
        self.subscriber = self.transport.subscriber(address) if address else None
        log.info(
            "traffic at %s (%s)",
            self.subscriber.address if self.subscriber else "none: no bursts.statistics",
            "with keys" if self.transport.curve else "without keys",
        )

    def loop(self) -> None:
        """Until told to stop; what was gathered is written then."""
        self.manager.ready()
        while not self.wakeup.stopping:
            if self.transport.wait(max(0.0, self.manager.longest_wait_s(LOOK_S))):
                self.wakeup.drain()
            self.manager.alive()
            self.turn(time.monotonic())
            if self.wakeup.reload and self.reread:
                self.wakeup.reload = False
                self.reread(self.manager, self._take_over)
        self.manager.stopping()

    def turn(self, now: float) -> None:
        """What is there now."""
        self._receive(now)
        for part in self.parts.values():
            part.look(now)
        if now >= self._status_at + STATUS_S:
            self._status_at = now
            try:
                self.kept.write_status(msgspec.json.encode(self.status(now)) + b"\n")
            except StoreError as error:
                self._said.warning(str(error))

    def _receive(self, now: float) -> None:
        if self.subscriber is None:
            return
        for _ in range(AT_ONCE):
            if self.subscriber.receive(0) is None:
                return

    def status(self, now: float) -> dict[str, Any]:
        """Plain values only."""
        return {
            "daemon": "burstd",
            "name": self.name,
            "written_s": time.time(),
            "uptime_s": now - self.started,
            "keys": self.transport.curve is not None,
            "statistics": self.subscriber.counts.summary() if self.subscriber else {},
            **{name: part.status() for name, part in self.parts.items()},
        }

    def _take_over(self, settings: config.Settings) -> None:
        self.settings = settings
        for part in self.parts.values():
            part.take_over(settings)

    def close(self) -> None:
        for part in self.parts.values():
            part.close()
        self.transport.close()
        os.close(self._claim)
        self.manager.close()


def settings_from(
    file: str | None, root: str | None, keys: str | None, address: str | None
) -> config.Settings:
    """The configuration with the command line's options on top. Raises ConfigError."""
    settings = config.load(file)
    settings = config.override(settings, "ossd", root=root)
    settings = config.override(settings, "bursts", statistics=address)
    return config.override(settings, "keys", directory=keys)


def main(argv: list[str] | None = None) -> int:
    options = parser(
        NAME, "Keep what each compute node moved, and answer Slurm which nodes a job should get."
    )
    options.add_argument(
        "--listen", metavar="ADDRESS", help="instead of bursts.statistics: tcp://slurm1:5775"
    )
    chosen = options.parse_args(argv)

    def body() -> int:
        def read() -> config.Settings:
            return settings_from(chosen.config, chosen.root, chosen.keys, chosen.listen)

        settings = read()
        with (
            Wakeup() as wakeup,
            contextlib.closing(BurstService(settings, wakeup, Reread(settings, read, USED))) as service,
        ):
            service.loop()
        log.info("stopped")
        return 0

    return run(NAME, chosen, body)


if __name__ == "__main__":
    sys.exit(main())
