"""How a council is, for people: `tarazu change tune show`, of which a few seconds old is good enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarazu.daemons.council.service import CouncilService


def status_of(service: CouncilService, now: float, unix_s: float) -> dict[str, Any]:
    """Plain values only; `now` is on the monotonic clock."""
    council, nodes = service.council, service.nodes
    decision = council.decision
    return {
        "daemon": "council",
        "council": service.name,
        "address": service.end.address,
        "written_s": unix_s,
        "uptime_s": now - service.started,
        "keys": service.transport.curve is not None,
        "group": nodes.group,
        "mode": council.mode,
        "why_mode": service.why_mode,
        "learner": council.learner,
        "levers": {name: list(values) for name, values in service.levers.items()},
        "dwell_s": council.dwell_s,
        "worse": council.worse,
        "decision": {
            "generation": decision.generation,
            "values": decision.values,
            "why": decision.why,
            "explored": decision.explored,
            "taken_back": decision.taken_back,
            "since_s": now - service.changed_at,
        },
        "moving": council.moving if council.mode == "apply" else "",
        "advice": council.advice() if council.mode == "advise" else {},
        "in_force": council.in_force(),
        "patterns": {str(pattern): count for pattern, count in council.patterns().items()},
        "choices": council.choices,
        "explored": council.explored,
        "taken_back": council.taken_back,
        "impossible": council.impossible,
        "stale": nodes.stale,
        "too_often": nodes.too_often,
        "refused": service.refused,
        "socket": service.end.counts.summary(),
        "knowledge": {"directory": str(service.kept.directory), "trouble": service.writer.trouble},
        "nodes_with_io": council.active,
        "nodes": {
            host: {
                "kind": node.observed.kind,
                "address": node.peer,
                "age_s": now - node.heard_at,
                "mode": node.mode,
                "in_force": node.observed.in_force,
                "bytes_per_s": node.observed.observation.bytes_per_s if node.observed.observation else 0.0,
                "problem": node.observed.problem,
            }
            for host, node in nodes.of.items()
            if node.observed
        },
    }
