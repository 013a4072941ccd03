"""clientd's families."""

from __future__ import annotations

from collections.abc import Iterator

from tarazu.daemons.clientd.service import Clientd
from tarazu.figures import Family, counter, counters, gauge, histogram
from tarazu.parts.metrics.exporter import Ask


def families(clientd: Clientd, ask: Ask) -> Iterator[Family]:
    yield from ask(lambda: list(figures(clientd)))


def figures(clientd: Clientd) -> Iterator[Family]:
    counts, notices = dict(clientd.counts), clientd.notices
    yield gauge("clientd_ready", "1 once clientd can forecast.", clientd.planner.ready.is_set())
    yield gauge("clientd_stopped", "1 while the site's stop file is there.", bool(clientd.site.why))
    yield counters(
        "clientd_requests",
        "Requests by kind.",
        "kind",
        {name: counts[name] for name in ("plans", "reports", "questions", "progress")},
    )
    yield counter("clientd_conversations_failed", "Conversations that ended with an error.", counts["failed"])
    yield counter(
        "clientd_conversations_turned_away",
        "Conversations refused for lack of room.",
        counts["turned_away"],
    )
    yield gauge("clientd_conversations", "Open conversations.", clientd.conversations.used.total())
    yield gauge("clientd_received_bytes", "Bytes received and not yet answered.", clientd.frames.used.total())
    yield gauge("clientd_plans_waiting", "Plans waiting for their turn.", clientd.plans.waiting)
    yield counters(
        "clientd_files",
        "Files of ended steps by outcome: a hit was placed as planned, a miss was not forecast.",
        "outcome",
        clientd.reports.files,
    )
    yield counters("clientd_file_bytes", "Bytes of the same files.", "outcome", clientd.reports.bytes)
    yield counters(
        "clientd_files_not_placed",
        'Files of ended steps that were not placed, by reason (docs/errors.md, "Files left to Lustre").',
        "reason",
        dict(clientd.reports.not_placed),
    )
    yield counters(
        "clientd_runs_not_placed",
        "Runs of these files, by reason, and those of which nobody knows the files.",
        "reason",
        dict(clientd.reports.runs_not_placed),
    )
    yield counters("clientd_plans", "Plans by result.", "status", dict(clientd.planned))
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
        "Forecasts that failed, or took too much time or memory.",
        clientd.planner.forecasts.failed,
    )
    yield counter(
        "clientd_database_errors",
        "Conversations that failed in the interaction database.",
        clientd.database_errors,
    )
    yield gauge(
        "clientd_notices_waiting", "Allocations whose news mdsd has not yet received.", notices.waiting
    )
    yield counters(
        "clientd_notices",
        "News for mdsd: messages sent, allocations given up.",
        "outcome",
        dict(notices.counts),
    )
