"""clientd's families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.exporter import Ask
from tarazu.daemons.metrics.families import build, counter, counters, gauge, histogram

if TYPE_CHECKING:
    from tarazu.daemons.clientd.service import Clientd

REQUESTS = ("plans", "reports", "questions", "progress")


def families(clientd: Clientd, ask: Ask) -> Iterator[Metric]:
    yield from build()
    yield from ask(lambda: list(_own(clientd)))


def _own(clientd: Clientd) -> Iterator[Metric]:
    counts, notices = dict(clientd.counts), clientd.notices
    yield gauge("clientd_ready", "1 once forecasts can be made.", clientd.planner.ready.is_set())
    yield gauge("clientd_stopped", "1 while the site's stop file is there.", bool(clientd.site.why))
    yield counters("clientd_requests", "Requests by kind.", "kind", {name: counts[name] for name in REQUESTS})
    yield counter("clientd_conversations_failed", "Conversations that ended with an error.", counts["failed"])
    yield counter(
        "clientd_conversations_turned_away",
        "Conversations for which there was no room.",
        counts["turned_away"],
    )
    yield gauge("clientd_conversations", "Open conversations.", clientd.conversations.used.total())
    yield gauge("clientd_received_bytes", "Received, and not yet answered.", clientd.frames.used.total())
    yield gauge("clientd_plans_waiting", "Plans that wait for their turn.", clientd.plans.waiting)
    yield counters(
        "clientd_files",
        "Files of ended steps by outcome: hit is placed as planned, miss was not forecast.",
        "outcome",
        clientd.reports.files,
    )
    yield counters("clientd_file_bytes", "Bytes of the same files.", "outcome", clientd.reports.bytes)
    yield counters("clientd_plans", "Plans by what came of them.", "status", dict(clientd.planned))
    yield histogram(
        "clientd_plan_seconds",
        "Time from a plan's turn to its reply, mdsd's answer included.",
        clientd.plan_seconds,
    )
    yield histogram(
        "clientd_forecast_seconds",
        "Time to read a step's histories and forecast from them.",
        clientd.planner.forecast_seconds,
    )
    yield counter(
        "clientd_forecasts_failed",
        "Forecasts that took too much time or memory, or fell over.",
        clientd.planner.forecasts.failed,
    )
    yield counter(
        "clientd_database_errors",
        "Conversations that the interaction database failed.",
        clientd.database_errors,
    )
    yield gauge("clientd_notices_waiting", "Allocations of which mdsd is still to be told.", notices.waiting)
    yield counters(
        "clientd_notices",
        "What mdsd was to be told: messages, allocations given up.",
        "outcome",
        dict(notices.counts),
    )
