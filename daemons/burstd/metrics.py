"""tarazu-burstd's families."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.exporter import Ask
from tarazu.daemons.metrics.families import build, counter, gauge, of_sockets

if TYPE_CHECKING:
    from tarazu.daemons.burstd.service import BurstService


def families(service: BurstService, ask: Ask) -> Iterator[Metric]:
    yield from build()
    yield from ask(lambda: list(_own(service)))


def _own(service: BurstService) -> Iterator[Metric]:
    reports, history = service.reports, service.history
    yield gauge("bursts_senders", "OSSs and nodes that report.", len(reports))
    yield counter("bursts_reports", "Reports that were taken.", reports.taken)
    yield counter("bursts_reports_missed", "Reports that did not come.", reports.missed)
    yield gauge("bursts_nodes", "Compute nodes of which there was traffic.", service.gathering.nodes)
    yield gauge("bursts_unknown_nids", "NIDs that are no known host's.", service.names.unknown)
    yield counter(
        "bursts_late_bytes", "Bytes of intervals that were closed already.", service.gathering.late_bytes
    )
    yield gauge("bursts_traffic_bytes", "That days of traffic take.", history.size)
    yield counter("bursts_lost_rows", "Rows that could not be written for too long.", history.lost_rows)
    yield gauge("bursts_writable", "0 while what is gathered cannot be kept.", not history.trouble)
    yield gauge("bursts_jobs", "Jobs that are noted.", history.jobs)
    yield gauge("bursts_jobs_running", "Of these those that run.", len(history.running))
    yield gauge("bursts_applications", "Applications that are known.", len(history.applications))
    yield gauge(
        "bursts_behind_seconds",
        "How far the sums of what jobs moved are behind.",
        max(0.0, time.time() - history.until_s),
    )
    yield gauge("bursts_slurm_answers", "0 while Slurm does not answer.", not service.batch.problem)
    if service.subscriber is not None:
        yield from of_sockets("bursts", {"statistics": service.subscriber.counts})
