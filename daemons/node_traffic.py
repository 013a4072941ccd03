"""tarazu-ossd --node: tells tarazu-burstd what a compute node moved, as it counts itself.

Publishes: a `NodeReport` every `bursts.interval_s` to `bursts.statistics`, with a client's key: what programs here
read and wrote on Lustre (`llite`), and bytes of the network besides LNet's, by which a job's communication is known.
Follows: nothing. What cannot be read is left out. When burstd is silent its reports are dropped, not queued.
"""

from __future__ import annotations

import logging
import math
import secrets
import socket
import time
from pathlib import Path

from tarazu import config
from tarazu.daemons.process import Reread, Wakeup
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import ConfigError
from tarazu.stats import node
from tarazu.wire.messages import NodeReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.node")

USED = ("keys.", "ossd.root", "ossd.name", "bursts.statistics", "bursts.interval_s")


class NodeService:
    """All state of the daemon."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup, reread: Reread | None = None) -> None:
        """Raises ConfigError, WireError."""
        address = settings.bursts.statistics
        if not address:
            raise ConfigError("bursts.statistics", "the address of tarazu-burstd, tcp://slurm1:5775", "")
        self.root = Path(settings.ossd.root)
        self.host = settings.ossd.name or socket.gethostname().partition(".")[0]
        self.interval_s = settings.bursts.interval_s
        self.wakeup = wakeup
        self.reread = reread
        self.manager = ServiceManager()
        self.incarnation = secrets.randbits(62) + 1
        self.sequence = 0
        self._before: tuple[float, node.NodeCounters] | None = None
        self.transport = ZmqTransport(
            curve_for("client", settings.keys.directory, settings.keys.insecure),
            insecure=settings.keys.insecure,
            wake_fd=wakeup.fd,
        )
        self.publisher = self.transport.publisher(address)
        log.info("%s tells %s every %g s", self.host, address, self.interval_s)

    def loop(self) -> None:
        """Until told to stop."""
        due = time.monotonic()
        self.manager.ready()
        while not self.wakeup.stopping:
            if (now := time.monotonic()) >= due:
                report = self.report(now)
                if report is not None:
                    self.publisher.publish(report)
                due += (math.floor((time.monotonic() - due) / self.interval_s) + 1) * self.interval_s
            self.publisher.wait(max(0.0, self.manager.longest_wait_s(due - time.monotonic())))
            self.wakeup.drain()
            self.manager.alive()
            if self.wakeup.reload and self.reread:
                self.wakeup.reload = False
                self.reread(self.manager, lambda _: None)
        self.manager.stopping()

    def report(self, now: float) -> NodeReport | None:
        """What was moved since the last one; None at first, and where nothing can be read."""
        found = node.read(self.root)
        before, self._before = self._before, (now, found)
        if before is None or now <= before[0]:
            return None
        read, written, network = node.since(found, before[1])
        if read is None and network is None:
            return None
        self.sequence += 1
        return NodeReport(
            self.host,
            self.sequence,
            time.time(),
            now - before[0],
            self.incarnation,
            read,
            written,
            network,
        )

    def close(self) -> None:
        self.transport.close()
        self.manager.close()
