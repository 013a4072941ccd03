"""ossd's families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.exporter import Ask
from tarazu.daemons.metrics.families import build, counter, gauge, histogram

if TYPE_CHECKING:
    from tarazu.daemons.ossd.service import Ossd


def families(ossd: Ossd, ask: Ask) -> Iterator[Metric]:
    yield from build()
    yield from ask(lambda: list(_own(ossd)))


def _own(ossd: Ossd) -> Iterator[Metric]:
    yield histogram("ossd_collection_seconds", "Time to read the server's statistics once.", ossd.collections)
    yield counter("ossd_reports_sent", "Reports handed to ZeroMQ, repeated ones included.", ossd.sent)
    yield counter(
        "ossd_handshakes_refused",
        "Connections to mdsd that failed: it refuses our key, or has another than ours of it.",
        ossd.publisher.counts.refused,
    )
    yield gauge("ossd_interval_seconds", "Time between two reports.", ossd.interval_s)
    if ossd.last is not None:
        yield gauge("ossd_targets", "OSTs in the last report.", len(ossd.last.osts))
        yield gauge(
            "ossd_unreadable_sources", "Statistics that could not be read for it.", len(ossd.last.unreadable)
        )
        yield gauge("ossd_jobs", "Jobs in it.", len(ossd.last.jobs))
