"""How much one message may hold, and the version of the protocol."""

from __future__ import annotations

from typing import Annotated

import msgspec

PROTOCOL = 1

MAX_ID_CHARACTERS = 128
MAX_CLOSED_FILES = 1_000_000
"""Of one FileClosed: as many as an AllocationRequest may have files."""
MAX_STRIPES = 5_000_000
"""Of one AllocationRequest; far above the largest job step, far below what would fill the memory."""
MAX_LAYOUTS = 10_000
MAX_COMPONENTS = 100_000
"""Of all its layouts; Lustre's own limit for one layout is below a thousand."""
MAX_ALIVE_IDS = 10_000
"""Of one StepAlive."""

MAX_TOLD_STRIPES, MAX_TOLD_FILES = 1_000_000, 1_000_000
"""Of one PromiseTold: 14 MB."""

MAX_TOLD_IDS = 1_000
"""Of one TargetsChanged."""

MAX_SOURCE_CHARACTERS = 32
MAX_MOUNTED = 64
MAX_POOLS = 1_000
"""File systems, and pools of each, of which one request tells."""

MAX_ROUTERS = 1_000
"""That one server reports."""

MAX_PART_BYTES = 4 << 20
"""Of what a part says in one message."""
MAX_PARTS = 64
"""Of one server, in one report."""

Id = Annotated[str, msgspec.Meta(max_length=MAX_ID_CHARACTERS)]


OstIndex = Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
Pools = Annotated[
    dict[Id, Annotated[tuple[OstIndex, ...], msgspec.Meta(max_length=1 << 16)]],
    msgspec.Meta(max_length=MAX_POOLS),
]
"""Pool → OST indices."""
PoolsSeen = Annotated[dict[Id, Pools], msgspec.Meta(max_length=MAX_MOUNTED)]
"""File system → the pools that a client sees: where mdsd is not on the MDS, it has no others."""
