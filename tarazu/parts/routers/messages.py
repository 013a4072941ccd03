"""What the part says to itself from node to node, in the core's envelopes (`wire.messages.PartRequest`).

leader ──StepNodes──► mdsd          by clientd, as long as its step runs
ossd ──RulesRequest──► mdsd ──RouterRules──► ossd
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tarazu.malformed import described
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.wire.bounds import MAX_MOUNTED, MAX_ROUTERS, Id
from tarazu.wire.reports import RouterState

MAX_NIDS_CHARACTERS = 64 << 10
"""Of the folded NIDs of one job step's nodes."""
MAX_RULES = 4_096
"""That one OSS reports, and that it is to have."""


class StepNodes(msgspec.Struct, frozen=True, tag="nodes", omit_defaults=True):
    """The nodes on which a job step runs. Sent again and again; one that says so, or silence, ends it."""

    id: Id
    """Of this step on this file system: nobody else's."""
    job_id: Id
    fs_name: Id
    nids: Annotated[str, msgspec.Meta(max_length=MAX_NIDS_CHARACTERS)]
    """LNet NIDs, folded: `10.77.0.[31-40]@tcp1, 10.77.0.50@tcp1`."""
    alive_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds without another one after which the step counts as dead; mdsd takes at least 2 s, at most an hour."""
    profile: StepProfile | None = None
    """Of its I/O over numbers of LNet routers, where that is known."""
    ended: bool = False
    """It does not run any more."""


class RouterRule(msgspec.Struct, frozen=True, array_like=True):
    """`lnetctl udsp add --dst DST --rte RTE`, both as folded by ip2nets' syntax."""

    dst: Annotated[str, msgspec.Meta(max_length=MAX_NIDS_CHARACTERS)]
    rte: Annotated[str, msgspec.Meta(max_length=MAX_NIDS_CHARACTERS)]


Rules = Annotated[tuple[RouterRule, ...], msgspec.Meta(max_length=MAX_RULES)]


class RulesRequest(msgspec.Struct, frozen=True, tag="rules?", omit_defaults=True):
    """An OSS asks which routers its answers to running jobs' nodes should take. Not kept: ask again at an interval."""

    oss: Id
    routers: Annotated[tuple[RouterState, ...], msgspec.Meta(max_length=MAX_ROUTERS)] = ()
    applied: int = 0
    """Generation of the rules that are set here; 0: none of ours are."""
    rules: Rules = ()
    """Ours that are set here now."""
    mode: Literal["observe", "advise", "apply"] = "observe"
    """What this OSS's own `part.routers.mode` allows."""
    fs_names: Annotated[tuple[Id, ...], msgspec.Meta(max_length=MAX_MOUNTED)] = ()
    """Whose targets it serves; empty: it does not say, and is told the rules of all."""


class RouterRules(msgspec.Struct, frozen=True, tag="rules", omit_defaults=True):
    """The rules that this OSS should have now, in place of those of any former generation."""

    generation: int
    """Equal rules have equal ones, also of another mdsd; not 0."""
    mode: Literal["observe", "advise", "apply", "learning"]
    """mdsd's own `part.routers.mode`: observe: an empty list; advise: what would be set; apply: set them, where the
    OSS's own setting agrees. learning: mdsd has just started and does not know all running jobs: what is set stays.
    """
    rules: Rules = ()


described(RouterRules)
