"""tarazu-ossd --node: tells tarazu-burstd what a compute node moved, as it counts itself.

Publishes: a `NodeReport` every `part.bursts.interval_s` to `part.bursts.statistics`, with a client's key: what programs
here read and wrote on Lustre (`llite`), and bytes of the network besides LNet's, by which a job's communication is
known.
Follows: nothing. What cannot be read is left out. When burstd is silent its reports are dropped, not queued.
"""

from __future__ import annotations

import logging
import secrets
import socket
import time
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.daemons.service import Service, Wakeup
from tarazu.errors import ConfigError
from tarazu.parts.bursts import counters
from tarazu.parts.bursts.messages import NodeReport
from tarazu.parts.bursts.settings import options_of
from tarazu.wire.messages import PartReport

log = logging.getLogger("tarazu.node")


class NodeService(Service):
    """All state of the daemon."""

    USED = ("keys.", "part.bursts.statistics", "part.bursts.interval_s")

    def __init__(self, settings: config.Settings, wakeup: Wakeup, name: str = "") -> None:
        """`name`: its host's by default. Raises ConfigError, WireError."""
        super().__init__(settings, wakeup)
        options = options_of(settings)
        address = options.statistics
        if not address:
            raise ConfigError("part.bursts.statistics", "the address of tarazu-burstd, tcp://slurm1:5775", "")
        self.root = Path(config.root())
        self.name = name
        self.interval_s = options.interval_s
        self.incarnation = secrets.randbits(62) + 1
        self.sequence = 0
        self._before: tuple[float, counters.NodeCounters] | None = None
        self.publisher = self.connect("client").publisher(address)
        self.every(lambda: self.interval_s, self._publish)
        log.info("%s tells %s every %g s", self.host, address, self.interval_s)

    @property
    def host(self) -> str:
        """It may come later, at boot."""
        return self.name or socket.gethostname().partition(".")[0]

    def turn(self, now: float) -> None:
        self.publisher.wait(0.0)  # who comes gets the next report

    def _publish(self, now: float) -> None:
        if (report := self.report(now)) is not None:
            self.publish(report)

    def publish(self, report: NodeReport) -> None:
        self.publisher.publish(PartReport("bursts", msgspec.msgpack.encode(report)))

    def report(self, now: float) -> NodeReport | None:
        """What was moved since the last one; None at first, and where nothing can be read."""
        read = counters.read(self.root)
        before, self._before = self._before, (now, read)
        if before is None or now <= before[0]:
            return None
        read_bytes, written, network = counters.since(read, before[1])
        if read_bytes is None and network is None:
            return None
        self.sequence += 1
        return NodeReport(
            self.host,
            self.sequence,
            time.time(),
            now - before[0],
            self.incarnation,
            read_bytes,
            written,
            network,
        )
