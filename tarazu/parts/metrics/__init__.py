"""The part of metrics: what daemons count, for Prometheus; each daemon on an address of its own, off by default.

settings             `[part.metrics]`
exporter             beside a daemon's loop: how its figures come out of that
server, text         what Prometheus gets
mdsd, ossd, clientd  the families of the core's daemons; those of parts say their own (`Service.figures`)
grafana              dashboards and alerts

prometheus_client is imported by a daemon that has an address, and by no other.
"""

from __future__ import annotations

from typing import Any

from tarazu.config.check import items
from tarazu.part import InDaemon, Part
from tarazu.parts.metrics.settings import Metrics


class MetricsPart(Part):
    name, settings = "metrics", Metrics

    def in_daemon(self, daemon: Any) -> InDaemon | None:
        name = type(daemon).__name__.lower()
        core = name if name in items(Metrics) else ""
        address = getattr(self.own(daemon.settings), core) if core else daemon.figures_at
        if not address:
            return None
        from tarazu.parts.metrics.exporter import exporter_of

        return exporter_of(daemon, address, core)


PART = MetricsPart()
