"""What Prometheus gets of a daemon's agents, by lever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tarazu.daemons.changes.agent import Agent


def of_agents(*agents: Agent) -> Iterator[Metric]:
    """As of each agent's last round; reads no files."""
    held = GaugeMetricFamily("tarazu_changes_set", "Targets that tarazu has set.", labels=("lever",))
    proposed = GaugeMetricFamily(
        "tarazu_changes_proposed",
        "Changes that wait: for a mode, an approval, a limit or a goal.",
        labels=("lever",),
    )
    left = GaugeMetricFamily(
        "tarazu_changes_left", "Targets that somebody else has changed since.", labels=("lever",)
    )
    not_as_wanted = GaugeMetricFamily(
        "tarazu_changes_not_as_wanted",
        "Targets half set, or that could not be set or restored.",
        labels=("lever",),
    )
    failed = CounterMetricFamily(
        "tarazu_changes_failed", "Failed attempts to set or restore.", labels=("lever",)
    )
    for agent in agents:
        changes = list(agent.store.held_changes.values())
        failing = {p.change.key for p in agent.written.proposals if p.state == "failed"}
        failing |= {each.key for each in changes if each.half_set}
        counts = (
            (held, Counter(each.change.lever for each in changes)),
            (proposed, Counter(each.change.lever for each in agent.written.proposals)),
            (left, Counter(each.change.lever for each in changes if each.theirs)),
            (not_as_wanted, Counter(lever for lever, _ in failing)),
            (failed, agent.engine.failures),
        )
        for lever in sorted({*agent.engine.levers, *(each.change.lever for each in changes)}):
            for family, count in counts:
                family.add_metric((lever,), count[lever])
    yield from (held, proposed, left, not_as_wanted, failed)
