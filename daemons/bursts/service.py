"""tarazu-burstd: keeps what each compute node moved, whose job ran there, and what is known of applications.

Follows: `OssReport`s of OSSs with `ossd.exports` (bound at `bursts.statistics`), and Slurm (sacct, scontrol), which is
asked in a thread. Publishes nothing; Slurm's plugin and `tarazu bursts` ask it. When an OSS is silent its clients'
traffic is missing; when Slurm is, jobs are learned once it answers. Kept are a file a day of traffic, the jobs, and
applications' history, below `bursts.directory`, written beside the loop: a kill loses what came since the last writing
(`service.SAVE_S`). SIGTERM and SIGINT end it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tarazu import config
from tarazu.daemons.bursts.batch import Batch, machine_of
from tarazu.daemons.bursts.gathering import Gathering
from tarazu.daemons.bursts.history import History, Saved
from tarazu.daemons.bursts.kept import Kept
from tarazu.daemons.bursts.names import Names
from tarazu.daemons.bursts.node_part import Nodes
from tarazu.daemons.bursts.reports import Reports
from tarazu.daemons.council.kept import Writer
from tarazu.daemons.metrics.exporter import Ask, Exporter
from tarazu.daemons.process import Reread, Wakeup, parser, serve
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import TarazuError
from tarazu.forwarding.bursts.applications import ApplicationCharacter
from tarazu.forwarding.bursts.characteristics import Thresholds
from tarazu.forwarding.traffic.batch_job import Application
from tarazu.forwarding.traffic.machine import Machine, regular
from tarazu.wire.messages import OssReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

log = logging.getLogger("tarazu.bursts")

NAME = "tarazu-burstd"
USED = ("keys.", "bursts.", "forwarding.nids", "run.stop_file", "run.exclude_", "run.only_", "metrics.bursts")
TURN_S = 0.1
"""So long reports are taken, then all else has its turn."""
TOPOLOGY_S = 3600.0
"""So often Slurm is asked where nodes stand."""
LOOK_S = 0.5
"""So often at least each part has its turn."""
STATUS_S = 5.0
SAVE_S = 60.0
"""A kill loses what came since the last writing, and intervals of which OSSs had not told yet."""


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
        self.writer = Writer()
        self._status_at = self.started - STATUS_S
        self.kept = Kept(settings.bursts.directory)
        self._claim = self.kept.claim()
        own = settings.bursts
        self.names = Names(settings.forwarding.nids)
        self.gathering = Gathering(own.interval_s)
        self.reports = Reports(self.gathering, self.names, own.job_ids)
        self.machine = machine_of(own.machine) if own.machine else None
        """Where nodes stand; None: nobody knows (yet: Slurm is asked beside the loop)."""
        self._topology_at = 0.0
        self.history = History(
            self.kept.traffic,
            self.kept.jobs,
            interval_s=own.interval_s,
            limits=Thresholds(intensive=own.intensive),
            limit_bytes=own.limit,
            machine=self.machine,
        )
        self.batch = Batch(own.jobs, self.kept.ended, self.history.answer, each=self._look_around)
        self._save_at = self.started + SAVE_S
        self.parts: dict[str, Part] = {}
        """In the order of their turns."""
        self.transport = ZmqTransport(
            curve_for("server", settings.keys.directory, settings.keys.insecure),
            insecure=settings.keys.insecure,
            wake_fd=wakeup.fd,
        )
        address = settings.bursts.statistics
        self.subscriber = self.transport.traffic(address) if address else None
        log.info(
            "traffic at %s (%s)",
            self.subscriber.address if self.subscriber else "none: no bursts.statistics",
            "with keys" if self.transport.curve else "without keys",
        )

        self.metrics = Exporter(settings.metrics.bursts, wakeup.wake, self._families)

    def loop(self) -> None:
        """Until told to stop; what was gathered is written then."""
        self.history.start()
        self.batch.start()
        self.start_nodes()
        self.manager.ready()
        while not self.wakeup.stopping:
            if self.transport.wait(max(0.0, self.manager.longest_wait_s(LOOK_S))):
                self.wakeup.drain()
            self.manager.alive()
            self.metrics.answer_one()
            self.turn(time.monotonic())
            if self.wakeup.reload and self.reread:
                self.wakeup.reload = False
                self.reread(self.manager, self._take_over)
        self.manager.stopping()
        self.save(time.time(), all_of_it=True)

    def turn(self, now: float) -> None:
        """What is there now."""
        self._receive(time.time())
        for part in self.parts.values():
            part.look(now)
        if now >= self._save_at:
            self._save_at = now + SAVE_S
            self.save(time.time())
        if now >= self._status_at + STATUS_S:
            self._status_at = now
            history = self.history
            self.manager.status(
                f"{len(self.reports)} senders, {self.gathering.nodes} nodes, {len(history.running)} jobs run, "
                f"{len(history.applications)} applications known"
            )
            status = self.status(now)
            self.writer.write(self.kept.write_status, lambda: msgspec.json.encode(status) + b"\n")

    def _receive(self, now_s: float) -> None:
        if self.subscriber is None:
            return
        until = time.monotonic() + TURN_S
        while time.monotonic() < until:
            if (report := self.subscriber.receive(0)) is None:
                return
            if isinstance(report, OssReport):
                self.reports.take(report, now_s)
            else:
                self.reports.take_node(report, now_s)

    def save(self, now_s: float, *, all_of_it: bool = False) -> None:
        """Hand over what is complete; all_of_it: also what is not, for nobody will hear the rest."""
        complete_s = now_s + self.gathering.interval_s if all_of_it else self.reports.complete_s(now_s)
        self.gathering.no_later(now_s)
        traffic = self.gathering.close(complete_s)
        self.history.save(Saved(traffic, min(complete_s, now_s), now_s if len(self.reports) else None))

    def _look_around(self) -> None:
        """In the batch's thread: what may take long."""
        if not self.settings.bursts.machine and time.monotonic() >= self._topology_at:
            self._topology_at = time.monotonic() + TOPOLOGY_S
            self._take_machine(machine_of(""))
        nodes = {name for job in self.history.running for name in job.nodes}
        self.names.look([*(self.machine.nodes if self.machine else ()), *sorted(nodes)])

    def start_nodes(self) -> None:
        """Answer Slurm, where there is one. What is wrong with that costs nobody the traffic."""
        own = self.settings.bursts
        if not own.socket or own.jobs != "slurm":
            return
        try:
            self.parts["nodes"] = Nodes(self.settings, self._known, running=lambda: self.history.running)
        except TarazuError as error:
            log.error("Slurm is not answered: %s", error)

    def _known(self, application: Application) -> ApplicationCharacter | None:
        return self.history.applications.get(application)

    def status(self, now: float) -> dict[str, Any]:
        """Plain values only."""
        return {
            "daemon": "burstd",
            "name": self.name,
            "written_s": time.time(),
            "uptime_s": now - self.started,
            "keys": self.transport.curve is not None,
            "statistics": self.subscriber.counts.summary() if self.subscriber else {},
            "traffic": {
                "interval_s": self.gathering.interval_s,
                "nodes": self.gathering.nodes,
                "unknown_nids": self.names.unknown,
                "open_intervals": len(self.gathering),
                "late_bytes": self.gathering.late_bytes,
                "senders": len(self.reports),
                "taken": self.reports.taken,
                "again": self.reports.again,
                "missed": self.reports.missed,
            },
            "slurm": {
                "source": self.batch.source,
                "answered": self.batch.answered,
                "problem": self.batch.problem,
            },
            "machine": {
                "nodes": len(self.machine.nodes) if self.machine else 0,
                "cabinets": len(self.machine.cabinets) if self.machine else 0,
                "io_nodes": len(self.machine.io_nodes) if self.machine else 0,
            },
            "history": self.history.status(),
            **{name: part.status() for name, part in self.parts.items()},
        }

    def _take_over(self, settings: config.Settings) -> None:
        own = settings.bursts
        if own.machine:
            self._take_machine(machine_of(own.machine))
        self.settings = settings
        self.history.limits = Thresholds(intensive=own.intensive)
        self.history.limit_bytes = own.limit
        for part in self.parts.values():
            part.take_over(settings)

    def _take_machine(self, machine: Machine | None) -> None:
        self.machine = machine
        self.history.machine = machine or regular(0, 1)

    def _families(self, ask: Ask) -> Iterable[Metric]:
        from tarazu.daemons.metrics.bursts import families

        return families(self, ask)

    def close(self) -> None:
        self.metrics.close()
        for part in self.parts.values():
            part.close()
        self.batch.close()
        self.history.close()
        self.writer.close()
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


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(
        NAME, "Keep what each compute node moved, and answer Slurm which nodes a job should get."
    )
    options.add_argument(
        "--listen", metavar="ADDRESS", help="instead of bursts.statistics: tcp://slurm1:5775"
    )
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        return settings_from(chosen.config, chosen.root, chosen.keys, chosen.listen)

    return serve(NAME, chosen, read, BurstService, USED)


if __name__ == "__main__":
    sys.exit(main())
