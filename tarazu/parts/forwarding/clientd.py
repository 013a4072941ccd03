"""The part in clientd: what mdsd says of a step's stripe counts, by the profile that its forecast found."""

from __future__ import annotations

import msgspec

from tarazu.errors import TarazuError
from tarazu.malformed import MALFORMED
from tarazu.part import PlanFacts
from tarazu.parts.forwarding.messages import CountReply, CountRequest, Profiled


def stripe_count(plan: PlanFacts) -> tuple[int, str]:
    """The number, and by what it was chosen; 0: why there is none."""
    try:
        found = msgspec.msgpack.decode(plan.made, type=Profiled)
        if found.profile is None:
            return 0, f"as auto: {found.why}"
        wanted = CountRequest(plan.id, plan.step.fs_name, plan.step.job_id, found.profile, plan.alive_s)
        reply = msgspec.msgpack.decode(plan.ask(msgspec.msgpack.encode(wanted)), type=CountReply)
    except (TarazuError, *MALFORMED) as error:
        return 0, f"as auto: {error}"
    if reply.count < 1:
        return 0, f"as auto: {reply.why}"
    return reply.count, f"{reply.count} {reply.why}; {found.why}"
