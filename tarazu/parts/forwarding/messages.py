"""What the part's halves say to one another, and to parts that need it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tarazu.malformed import described
from tarazu.wire.bounds import Id

MAX_POINTS = 4_096
"""Of one bandwidth curve."""
MOST_CHARACTERS = 500


class StepProfile(msgspec.Struct, frozen=True):
    """What is known of a job step's I/O, as plain numbers (`counting` makes an Application of them)."""

    nodes: Annotated[int, msgspec.Meta(ge=1)]
    """Compute nodes that it occupies."""
    cpu_s: Annotated[float, msgspec.Meta(ge=0)]
    """Compute time between its I/O phases, all together."""
    io_bytes: Annotated[float, msgspec.Meta(ge=0)]
    """Of all its I/O phases together."""
    points: Annotated[tuple[tuple[int, float], ...], msgspec.Meta(max_length=MAX_POINTS)]
    """Bandwidth curve: (resources, bytes a second), at least one."""
    phases: Annotated[int, msgspec.Meta(ge=1)] = 1
    """Times that it computes and then does I/O."""


class Profiled(msgspec.Struct, frozen=True):
    """What the process of a forecast found."""

    profile: StepProfile | None
    why: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]
    """Where the curve comes from, or why there is none."""


class CountRequest(msgspec.Struct, frozen=True, tag="count?", omit_defaults=True):
    """Over how many OSTs should the files of this job step be striped?"""

    id: Id
    """That of its AllocationRequest to come: its end, and silence, end the profile too."""
    fs_name: Id
    job_id: Id
    profile: StepProfile
    alive_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """As in AllocationRequest; 0: a question only, mdsd keeps no profile."""


class CountReply(msgspec.Struct, frozen=True, tag="count", omit_defaults=True):
    count: int
    """Stripes of each file; 0: mdsd does not say."""
    why: str = ""
    """By what it was chosen, or why it was not; for people."""


described(StepProfile, Profiled, CountRequest, CountReply)
