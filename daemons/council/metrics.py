"""tarazu-council's families."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.exporter import Ask
from tarazu.daemons.metrics.families import build, counter, counters, gauge, histogram, of_sockets
from tarazu.tune.exchange import MODES

if TYPE_CHECKING:
    from tarazu.daemons.council.service import CouncilService


def families(service: CouncilService, ask: Ask) -> Iterator[Metric]:
    yield from build()
    yield from ask(lambda: list(_own(service)))


def _own(service: CouncilService) -> Iterator[Metric]:
    council, nodes = service.council, service.nodes
    yield gauge("council_mode", "0 observe, 1 advise, 2 apply.", MODES.index(council.mode))
    yield gauge("council_nodes", "Nodes whose announcers are there.", len(nodes))
    yield gauge("council_nodes_with_io", "Of these those that have I/O, and a voice.", council.active)
    yield gauge("council_patterns", "Access patterns that are seen now.", len(council.patterns()))
    yield counter("council_choices", "Rounds after which a learner was asked.", council.choices)
    yield counter("council_explored", "Of these those that tried a value to learn.", council.explored)
    yield counter(
        "council_taken_back",
        "Values that were taken back because they made things worse.",
        council.taken_back,
    )
    yield gauge(
        "council_generation", "Counts up with each change of what is decided.", council.decision.generation
    )
    yield gauge(
        "council_decision_age_seconds", "How long it is in force.", time.monotonic() - service.changed_at
    )
    yield histogram(
        "council_answer_seconds",
        "From the receipt of what a node saw to the answers of all that were there.",
        service.answers,
    )
    left = {
        "refused": service.refused,
        "stale": nodes.stale,
        "too_often": nodes.too_often,
        "impossible": council.impossible,
    }
    yield counters("council_not_learned", "Messages that were not taken, by reason.", "reason", left)
    decided = GaugeMetricFamily(
        "tarazu_council_in_force", "Nodes that have a value of a lever.", labels=("lever", "value")
    )
    for lever, values in council.in_force().items():
        for value, count in values.items():
            if value in service.levers.get(lever, ()):
                decided.add_metric((lever, value), count)
    yield decided
    yield gauge(
        "council_knowledge_writable", "0 while what is learned cannot be kept.", not service.writer.trouble
    )
    yield from of_sockets("council", {"announcers": service.end.counts})
