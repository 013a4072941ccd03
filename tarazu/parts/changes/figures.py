"""What a daemon's agents have set, proposed and failed to set, by lever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tarazu.figures import Family
from tarazu.parts.changes.agent import Agent


def of_agents(*agents: Agent) -> Iterator[Family]:
    """As of each agent's last round; reads no files."""
    held = Family("gauge", "changes_set", "Targets that tarazu has set.", ("lever",))
    proposed = Family(
        "gauge",
        "changes_proposed",
        "Changes that wait: for a mode, an approval, a limit or a goal.",
        ("lever",),
    )
    left = Family("gauge", "changes_left", "Targets that somebody else has changed since.", ("lever",))
    not_as_wanted = Family(
        "gauge",
        "changes_not_as_wanted",
        "Targets half set, or that could not be set or restored.",
        ("lever",),
    )
    failed = Family("counter", "changes_failed", "Failed attempts to set or restore.", ("lever",))
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
                family.samples[lever,] = count[lever]
    yield from (held, proposed, left, not_as_wanted, failed)
