"""What slow ranks cost a phase: the share of its time in which ranks that were done waited for the slowest one.

All ranks move the same bytes, so that with even ones all end together. Of ranks with times t_i

    lost    = 1 - mean(t) / max(t)     what evenness gives at an unchanged speed of all together
    at most = 1 - min(t) / max(t)      were every rank as fast as the first: nothing that evens out ranks gives more

Where only the state at a deadline t0 is known, the first rank ends there, and what all moved until then tells the speed
of all together: lost = 1 - t0 / m / T, with T the phase's time and m what the mean rank had moved by what the fastest
had. What lay in clients' caches counts there as moved.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tarazu.parts.whatif.ior.output import Phase

CLOCKS_APART = 0.05
"""Share of the longest rank's time by which a phase may be longer; beyond, the nodes' clocks differ."""
APART_S = 1.0
"""And so many seconds."""
SHORT_S = 5.0
"""A shorter phase is named: its ranks' times are mostly chance."""
COARSE = "below 1 GiB a rank IOR prints what was moved until the deadline too coarsely to say what was lost"
BETWEEN_NODES = 0.5
"""Share of the spread beyond which nodes are named, not single ranks."""


class BetweenNodes(msgspec.Struct, frozen=True):
    """How much of the spread of ranks lies between nodes, beyond chance."""

    share: float
    dealt: Literal["in blocks", "in turn"]
    """How ranks would have been dealt to nodes for that; IOR does not say it."""


class Lost(msgspec.Struct, frozen=True):
    """Of one phase."""

    phase: str
    operation: str
    ranks: int
    shared: bool
    first_s: float | None = None
    mean_s: float | None = None
    last_s: float | None = None
    lost_share: float | None = None
    at_most_share: float | None = None
    seen_by: Literal["ranks", "deadline", ""] = ""
    """Times of single ranks, or only what was moved at a deadline."""
    between_nodes: BetweenNodes | None = None
    why_not: str = ""
    """Why nothing, or not all, can be said."""
    notes: tuple[str, ...] = ()


def lost(phase: Phase) -> Lost:
    """What can be said of one phase."""
    general = Lost(phase.name, phase.operation, phase.tasks or len(phase.ranks_s), phase.shared)
    if phase.why_not:
        return msgspec.structs.replace(general, why_not=phase.why_not)
    why = _why_no_ranks(phase)
    if not why:
        return _of_ranks(phase, general)
    if phase.stonewall and not phase.stonewall.all_done:
        return _of_deadline(phase, general)
    return msgspec.structs.replace(general, why_not=why)


def _why_no_ranks(phase: Phase) -> str:
    """Why times of single ranks tell nothing; empty where they do."""
    if phase.deadline and not phase.wear_out and not phase.stonewall:
        return (
            "all ranks stop at its deadline (-D without -O stoneWallingWearOut=1), whatever they have moved"
        )
    if phase.stonewall and phase.stonewall.all_done:
        return "all ranks had done their part before its deadline, and waited for one another there"
    if not phase.ranks_s:
        return "no times of single ranks are in it (IOR's option -O saveRankPerformanceDetailsCSV=FILE writes them)"
    if phase.held:
        why = "collective calls" if phase.collective else "the comparison of data (-R, -W)"
        return f"{why} made all ranks wait for one another before their clocks stopped"
    if max(phase.ranks_s) <= 0:
        return "its ranks took no time"
    if not phase.command and _alike(phase):
        return (
            "all ranks took the same time: they were even, or IOR made them wait for one another (-R, -W, -c)"
        )
    return ""


def _alike(phase: Phase) -> bool:
    return min(phase.ranks_s) >= 0.998 * max(phase.ranks_s)


def _of_ranks(phase: Phase, general: Lost) -> Lost:
    seconds = np.array(phase.ranks_s)
    first_s, mean_s, last_s = float(seconds.min()), float(seconds.mean()), float(seconds.max())
    notes = []
    if last_s < SHORT_S:
        notes.append(f"took less than {SHORT_S:.0f} s: the times of its ranks are mostly chance")
    if phase.moved_s > last_s * (1 + CLOCKS_APART) + APART_S:
        notes.append(
            f"the phase is said to have taken {phase.moved_s:.0f} s, but no rank more than {last_s:.0f} s: "
            "the nodes' clocks differ, or ranks began at different times"
        )
    return msgspec.structs.replace(
        general,
        ranks=len(seconds),
        first_s=first_s,
        mean_s=mean_s,
        last_s=last_s,
        lost_share=1 - mean_s / last_s,
        at_most_share=1 - first_s / last_s,
        seen_by="ranks",
        between_nodes=_between_nodes(seconds, phase.tasks_per_node),
        notes=tuple(notes),
    )


def _of_deadline(phase: Phase, general: Lost) -> Lost:
    wall = phase.stonewall
    assert wall is not None
    last_s = max(phase.moved_s, wall.at_s)
    if last_s <= 0:
        return msgspec.structs.replace(general, why_not="its ranks took no time")
    even_s = min(last_s, wall.at_s / wall.mean_share) if wall.mean_share else None
    return msgspec.structs.replace(
        general,
        first_s=wall.at_s,
        mean_s=even_s,
        last_s=last_s,
        lost_share=None if even_s is None else 1 - even_s / last_s,
        at_most_share=1 - wall.at_s / last_s,
        seen_by="deadline",
        notes=() if even_s else (COARSE,),
    )


def _between_nodes(seconds: np.typing.NDArray[np.float64], per_node: int) -> BetweenNodes | None:
    """Variance between nodes by all variance, less what chance gives, for the better of two ways to deal ranks."""
    nodes = len(seconds) // per_node if per_node else 0
    whole = float(seconds.var())
    if per_node < 2 or nodes < 2 or nodes * per_node != len(seconds) or whole <= 0:
        return None
    chance = (nodes - 1) / (len(seconds) - 1)
    blocks = float(seconds.reshape(nodes, per_node).mean(1).var()) / whole
    turns = float(seconds.reshape(per_node, nodes).mean(0).var()) / whole
    share = max(0.0, (max(blocks, turns) - chance) / (1 - chance))
    return BetweenNodes(share, "in blocks" if blocks >= turns else "in turn")
