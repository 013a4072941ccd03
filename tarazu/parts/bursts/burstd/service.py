"""tarazu-burstd: keeps what each compute node moved, whose job ran there, and what is known of applications.

Follows: `OssReport`s of OSSs with `ossd.exports` (bound at `part.bursts.statistics`), and Slurm (sacct, scontrol),
which is asked in a thread. Publishes nothing; Slurm's plugin asks it. When an OSS is silent
its clients' traffic is missing; when Slurm is, jobs are learned once it answers. Kept are a file an hour of traffic,
jobs, and applications' history, below `state.directory`, written beside the loop: a kill loses what came since the last
writing (`service.SAVE_S`). SIGTERM and SIGINT end it, SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tarazu import config
from tarazu.batch.jobs import ApplicationKey
from tarazu.daemons.service import Service, Wakeup, claim, parser, serve
from tarazu.daemons.writer import Writer
from tarazu.errors import BadInput, TarazuError
from tarazu.figures import Family, counter, gauge
from tarazu.parts.bursts.burstd.batch import Batch, machine_of
from tarazu.parts.bursts.burstd.gathering import Gathering
from tarazu.parts.bursts.burstd.history import BurstHistory, Saved
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.burstd.node_part import NodeSelection
from tarazu.parts.bursts.burstd.reports import Names, Reports
from tarazu.parts.bursts.measures.applications import ApplicationCharacter
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.settings import directory_of, options_of
from tarazu.parts.bursts.traffic import machine as machines
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.changes.figures import of_agents
from tarazu.parts.routers.settings import Routers
from tarazu.units import counted
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import of_sockets

log = logging.getLogger("tarazu.bursts")

NAME = "tarazu-burstd"
TURN_S = 0.1
"""So long reports are taken, then all else has its turn."""
TOPOLOGY_S, UNKNOWN_S = 600.0, 60.0
"""So often it is looked where nodes stand; and so often while that, or Slurm, is not there."""
LOOK_S = 0.5
"""So often at least each part has its turn."""
STATUS_S = 5.0
SAVE_S = 60.0
"""A kill loses what came since the last write, and intervals that OSSs had not reported yet."""


class BurstService(Service):
    """All state of the daemon."""

    USED = (
        "keys.",
        "state.",
        "part.bursts.",
        "part.routers.nids",
        "run.stop_file",
        "run.exclude_",
        "run.only_",
    )

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        """Raises ConfigError, BadInput, StoreError, WireError; Unavailable where there is another one."""
        self.own = own = options_of(settings)
        super().__init__(settings, wakeup, own.metrics)
        self.started = time.monotonic()
        self.name = socket.gethostname()
        self.writer = Writer()
        self.kept = BurstsDirectory(directory_of(settings))
        self.kept.make()
        self.claimed = claim(self.kept.directory, "another tarazu-burstd has its files here")
        self.names = Names(settings.part.of("routers", Routers).nids)
        self.gathering = Gathering(own.interval_s)
        self.reports = Reports(self.gathering, self.names)
        self.machine = machines.read(Path(own.machine)) if own.machine else None
        """Where nodes stand; None: nobody knows (yet: Slurm is asked beside the loop)."""
        self.by_topology = False
        """Slurm has leaf switches, and fills them."""
        self._topology_at = 0.0
        self._said = SaidOnce(log)
        self.history = BurstHistory(
            self.kept.traffic,
            self.kept.jobs,
            interval_s=own.interval_s,
            limits=Thresholds(intensive=own.intensive),
            limit_bytes=own.limit,
            machine=self.machine,
        )
        self.batch = Batch(self.history.answer, each=self._look_around)
        self.nodes: NodeSelection | None = None
        """None: Slurm is not answered (yet)."""
        self.transport = self.connect("server")
        self.subscriber = self.transport.subscriber(own.statistics) if own.statistics else None
        log.info(
            "traffic at %s (%s)",
            self.subscriber.address if self.subscriber else "none: no part.bursts.statistics",
            "with keys" if self.transport.curve else "without keys",
        )
        self.every(lambda: SAVE_S, lambda _: self.save(time.time()), first_s=SAVE_S)
        self.every(lambda: STATUS_S, self._tell)
        self.every(lambda: UNKNOWN_S, lambda _: self.start_nodes(), first_s=UNKNOWN_S)

    def begin(self) -> None:
        self.history.start()
        self.batch.start()
        self.start_nodes()

    def may_wait_s(self, now: float) -> float:
        return LOOK_S

    def turn(self, now: float) -> None:
        """What is there now."""
        self._receive(time.time())
        if self.nodes:
            self.nodes.look(now)

    def finish(self) -> None:
        """What was gathered is written."""
        self.save(time.time(), all_of_it=True)

    def _tell(self, now: float) -> None:
        history = self.history
        self.manager.status(
            f"{counted(len(self.reports), 'sender')}, {counted(self.gathering.nodes, 'node')}, "
            f"{counted(len(history.running), 'job')} run, "
            f"{counted(len(history.applications), 'application')} known"
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
            self.reports.take(report, now_s)

    def save(self, now_s: float, *, all_of_it: bool = False) -> None:
        """Hand over what is complete; all_of_it: also what is not, for nobody will hear the rest."""
        complete_s = now_s + self.gathering.interval_s if all_of_it else self.reports.complete_s(now_s)
        self.gathering.no_later(now_s)
        traffic = self.gathering.close(complete_s)
        self.history.save(Saved(traffic, min(complete_s, now_s), now_s if len(self.reports) else None))

    def _look_around(self) -> None:
        """In the batch's thread: what may take long."""
        if time.monotonic() >= self._topology_at:
            try:
                machine, self.by_topology = machine_of(self.own.machine)
            except BadInput as error:
                machine = None
                self._said.warning(f"part.bursts.machine: {error}: what was known stays", str(error))
            if machine is not None:
                self._take_machine(machine)
            self._topology_at = time.monotonic() + (TOPOLOGY_S if self.machine else UNKNOWN_S)
        nodes = {name for job in self.history.running for name in job.nodes}
        self.names.look([*(self.machine.nodes if self.machine else ()), *sorted(nodes)])

    def start_nodes(self) -> None:
        """Answer Slurm, once there is one. What is wrong with that costs nobody the traffic."""
        if self.nodes:
            return
        try:
            self.nodes = NodeSelection(
                self.settings,
                self._known,
                running=lambda: self.history.running,
                where=lambda: (self.machine, self.by_topology),
            )
        except TarazuError as error:
            self._said.warning(f"Slurm is not answered: {error}", f"nodes {error}")

    def _known(self, application: ApplicationKey) -> ApplicationCharacter | None:
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
                "nodes": self.gathering.nodes,
                "unknown_nids": self.names.unknown,
                "late_bytes": self.gathering.late_bytes,
                "senders": len(self.reports),
                "missed": self.reports.missed,
            },
            "slurm": {"problem": self.batch.problem},
            "history": self.history.status(),
            **({"nodes": self.nodes.status()} if self.nodes else {}),
        }

    def take_over(self, settings: config.Settings) -> None:
        own = options_of(settings)
        if own.machine:
            self._take_machine(machines.read(Path(own.machine)))
        self.history.limits = Thresholds(intensive=own.intensive)
        self.history.limit_bytes = own.limit
        if self.nodes:
            self.nodes.take_over(settings)
        self.own = own

    def _take_machine(self, machine: Machine | None) -> None:
        self.machine = machine
        self.history.machine = machine or regular(0, 1)

    def figures(self) -> Iterator[Family]:
        reports, history = self.reports, self.history
        yield gauge("bursts_senders", "OSSs that report.", len(reports))
        yield counter("bursts_reports", "Reports received.", reports.taken)
        yield counter("bursts_reports_missed", "Reports that were lost.", reports.missed)
        yield gauge("bursts_nodes", "Compute nodes with traffic.", self.gathering.nodes)
        yield gauge("bursts_unknown_nids", "NIDs of no known host.", self.names.unknown)
        yield counter(
            "bursts_late_bytes", "Bytes that came after their interval was closed.", self.gathering.late_bytes
        )
        yield gauge("bursts_traffic_bytes", "Disk space of traffic.", history.size)
        yield counter(
            "bursts_lost_rows", "Rows dropped because the disk was full for too long.", history.lost_rows
        )
        yield gauge("bursts_writable", "0 while traffic cannot be written.", not history.trouble)
        yield gauge("bursts_jobs", "Jobs in the database.", history.jobs)
        yield gauge("bursts_jobs_running", "Jobs that run now.", len(history.running))
        yield gauge("bursts_applications", "Known applications.", len(history.applications))
        yield gauge(
            "bursts_behind_seconds",
            "How far the sums of jobs' bytes are behind.",
            max(0.0, time.time() - history.until_s),
        )
        yield gauge("bursts_slurm_answers", "0 while Slurm does not answer.", not self.batch.problem)
        if self.subscriber is not None:
            yield from of_sockets("bursts", {"statistics": self.subscriber.counts})
        if self.nodes:
            yield from of_agents(self.nodes.keeping.agent)

    def release(self) -> None:
        if self.nodes:
            self.nodes.close()
        self.batch.close()
        self.history.close()
        self.writer.close()


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(
        NAME, "Record the traffic of each compute node, and tell Slurm which nodes a job should get."
    )
    options.add_argument(
        "--listen", metavar="ADDRESS", help="instead of part.bursts.statistics: tcp://slurm1:5775"
    )
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        """The configuration with the command line's options on top. Raises ConfigError."""
        settings = config.override(config.load(chosen.config), "part.bursts", statistics=chosen.listen)
        return config.override(settings, "keys", directory=chosen.keys)

    return serve(NAME, chosen, read, BurstService)


if __name__ == "__main__":
    sys.exit(main())
