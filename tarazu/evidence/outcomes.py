"""One remembered run as evidence: whether it was placed, how fast it wrote, and how the file system was then.

All of it stands in the first line of a run's file, so that many runs are looked at in little time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tarazu import left
from tarazu.model import Layout
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import LayoutKind, RunRecord, Seconds

Arm = Literal["placed", "left"]

LEFT_ON_PURPOSE = frozenset({left.CONTROL, left.NOT_FASTER, left.OBSERVING, left.ADVISING})
"""Reasons that have nothing to do with how the file system was. Where Lustre does as well by the estimate (`no gain`)
it had an easy time, and its rate says nothing about the other runs.
"""
MOST_OF = 0.5
"""Share of a run's bytes that was placed, or left for one of these reasons, from which the run counts as such."""
LEAST_S, LEAST_BYTES = 0.05, 1 << 20
"""Less is written in caches, and says nothing about OSTs."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run that can be compared with others."""

    arm: Arm
    start_s: Annotated[float, Meta(ge=0)]
    """Unix time."""
    end_s: Annotated[float, Meta(ge=0)]
    bytes: Annotated[float, Meta(ge=LEAST_BYTES, le=2.0**63)]
    seconds: Annotated[float, Meta(ge=LEAST_S, le=1e9)]
    """Of writing, each wave from its first open to its last close."""
    kind: LayoutKind = ""
    usable_osts: Annotated[int, Meta(ge=0)] = 0
    """Of the file system then; 0: not known."""
    well: bool = True
    """No OST that it used was sick, full or slow, as far as that is known."""
    expected_s: Seconds = 0.0
    """By the estimate, without correction, where it was placed; 0: not known."""
    expected_requests_s: Seconds = 0.0
    """Of its files' requests to the MDS, likewise."""
    expected_gain: Annotated[float, Meta(ge=-1, le=1e9)] = 0.0
    """By how much longer Lustre would have taken, as a share of both, corrected; 0: not known."""

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds


def outcomes(runs: Iterable[RunRecord]) -> list[Outcome]:
    """Of those that can be compared, in their order."""
    return [of for run in runs if (of := outcome(run)) is not None]


def outcome(run: RunRecord) -> Outcome | None:
    """None for a run that is no evidence: it failed, or was placed in part, or left for another reason."""
    writing = [phase for phase in run.phases if phase.operation == "write"]
    seconds, size = _lasted_s(writing), float(sum(phase.bytes for phase in writing))
    arm = _arm(run)
    if arm is None or not run.complete or seconds < LEAST_S or size < LEAST_BYTES:
        return None
    system = run.system
    return Outcome(
        arm,
        run.start_s,
        run.start_s + run.duration_s,
        size,
        seconds,
        run.placed_kind,
        usable_osts=system.usable_osts if system else 0,
        well=not (system and any(ost.verdict.amiss for ost in system.osts.values())),
        expected_s=run.expected_s,
        expected_requests_s=run.expected_requests_s,
        expected_gain=run.expected_gain,
    )


def kind_of(layouts: Sequence[tuple[Layout, int]]) -> LayoutKind:
    """Of the most bytes. `layouts`: each with the bytes of its files."""
    sums: dict[LayoutKind, int] = {}
    for layout, size in layouts:
        several = len(layout.components) > 1
        kind: LayoutKind = (
            "progressive" if several else "striped" if layout.components[0].stripe_count > 1 else "plain"
        )
        sums[kind] = sums.get(kind, 0) + size
    return max(sums, key=lambda kind: sums[kind], default="")


def _arm(run: RunRecord) -> Arm | None:
    left_on_purpose = sum(of.bytes for of in run.not_placed if of.why.word in LEFT_ON_PURPOSE)
    total = run.placed_bytes + sum(of.bytes for of in run.not_placed)
    if run.placed_bytes > MOST_OF * total:
        return "placed"
    return "left" if not run.placed_bytes and left_on_purpose > MOST_OF * total else None


def _lasted_s(phases: Iterable[Phase]) -> float:
    """Phases that overlap take no longer than they last together."""
    total, until = 0.0, float("-inf")
    for phase in sorted(phases, key=lambda phase: phase.start_s):
        total += max(0.0, phase.end_s - max(phase.start_s, until))
        until = max(until, phase.end_s)
    return total
