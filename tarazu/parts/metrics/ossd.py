"""ossd's families."""

from __future__ import annotations

from collections.abc import Iterator

from tarazu.daemons.ossd.service import Ossd
from tarazu.figures import Family, counter, gauge, histogram
from tarazu.parts.metrics.exporter import Ask


def families(ossd: Ossd, ask: Ask) -> Iterator[Family]:
    yield from ask(lambda: list(figures(ossd)))


def figures(ossd: Ossd) -> Iterator[Family]:
    yield histogram("ossd_collection_seconds", "Time to read the server's statistics once.", ossd.collections)
    yield counter("ossd_reports_sent", "Reports handed to ZeroMQ, repeated ones included.", ossd.sent)
    yield counter(
        "ossd_handshakes_refused",
        "Connections to mdsd that failed: one side has a wrong key of the other.",
        ossd.publisher.counts.refused,
    )
    yield gauge("ossd_interval_seconds", "Time between two reports.", ossd.interval_s)
    if ossd.last is not None:
        yield gauge("ossd_targets", "OSTs in the last report.", len(ossd.last.osts))
        yield gauge(
            "ossd_unreadable_sources",
            "Statistics that could not be read.",
            len(ossd.last.unreadable),
        )
        yield gauge("ossd_jobs", "Jobs in the last report.", len(ossd.last.jobs))
    for of_part in ossd.parts.each(lambda part: list(part.families())).values():
        yield from of_part
