"""An allocation request at mdsd: is it sane, what does it keep in memory, what does its answer promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tarazu.layout.objects import promised_bytes
from tarazu.lustre import EOF, LOV_MAX_STRIPE_COUNT, MAX_STRIPE_SIZE_BYTES
from tarazu.model import Allocation, CreateRequest, Layout, Left
from tarazu.wire.bounds import MAX_COMPONENTS, MAX_ID_CHARACTERS, MAX_LAYOUTS, MAX_STRIPES
from tarazu.wire.messages import AllocationReply, AllocationRequest, LeftFiles

MAX_FILES = 1_000_000
MAX_WAVE = 2**31
MAX_NAME_CHARACTERS = 256
"""Of a file system, a job id, a pool, a server: more than any of them can have."""
MAX_DEADLINE_S = 3_600.0
MAX_EXPIRES_S = 30 * 86_400.0
MIN_ALIVE_S = 2.0
"""Below, mdsd's own pauses would look like silence."""
MAX_ALIVE_S = 86_400.0


def why_malformed(request: AllocationRequest) -> str:
    """Empty for a request that can be given to the allocator, else what is wrong with it."""
    if not 0 < len(request.id) <= MAX_ID_CHARACTERS:
        return f"expected an id of 1 to {MAX_ID_CHARACTERS} characters, found {len(request.id)}"
    for name, value in (("file system", request.fs_name), ("job id", request.job_id)):
        if len(value) > MAX_NAME_CHARACTERS:
            return f"expected a {name} of at most {MAX_NAME_CHARACTERS} characters, found {len(value)}"
    if not (math.isfinite(request.deadline_s) and request.deadline_s >= 0):
        return f"expected a deadline of 0 s or more, found {request.deadline_s}"
    if not (math.isfinite(request.expires_s) and request.expires_s > 0):
        return f"expected an expiry above 0 s, found {request.expires_s}"
    if not (math.isfinite(request.alive_s) and request.alive_s >= 0):
        return f"expected signs of life within 0 s or more, found {request.alive_s}"
    if len(request.files) > MAX_FILES:
        return f"expected at most {MAX_FILES} files in one request, found {len(request.files)}"
    if len(request.own) not in (0, len(request.layouts)):
        return f"expected Lustre's own for {len(request.layouts)} layouts or none, found {len(request.own)}"
    if request.own and not 0 <= min(request.own) <= max(request.own) < len(request.layouts):
        return f"expected Lustre's own among {len(request.layouts)} layouts, found {max(request.own)}"
    return _why_layouts_malformed(request.layouts) or _why_files_malformed(request)


def _why_layouts_malformed(layouts: Sequence[Layout]) -> str:
    if len(layouts) > MAX_LAYOUTS:
        return f"expected at most {MAX_LAYOUTS} layouts in one request, found {len(layouts)}"
    components = sum(len(layout.components) for layout in layouts)
    if components > MAX_COMPONENTS:
        return f"expected at most {MAX_COMPONENTS} components in one request, found {components}"
    for number, layout in enumerate(layouts):
        for c in layout.components:
            if not (
                0 <= c.start_bytes < c.end_bytes <= EOF
                and 0 <= c.stripe_count <= LOV_MAX_STRIPE_COUNT
                and 0 < c.stripe_size_bytes <= MAX_STRIPE_SIZE_BYTES
            ):
                return f"layout {number}: expected extents and striping within Lustre's limits"
            if max(len(c.pool), len(c.pattern)) > MAX_NAME_CHARACTERS:
                return f"layout {number}: expected names of at most {MAX_NAME_CHARACTERS} characters"
        if not layout.components:
            return f"layout {number}: expected components, found none"
    return ""


def _why_files_malformed(request: AllocationRequest) -> str:
    stripes = [sum(c.stripe_count for c in layout.components) for layout in request.layouts]
    total = 0
    for number, file in enumerate(request.files):
        if not 0 <= file.layout < len(stripes):
            return f"file {number}: expected a layout below {len(stripes)}, found {file.layout}"
        if not 0 <= file.size_bytes < 2**63:
            return f"file {number}: expected a size of 0 or more bytes, found {file.size_bytes}"
        if not 0 <= file.wave < MAX_WAVE:
            return f"file {number}: expected a wave of 0 to {MAX_WAVE - 1}, found {file.wave}"
        if not 1 <= file.writers < 2**31:
            return f"file {number}: expected 1 writer or more, found {file.writers}"
        total += stripes[file.layout]
    if total > MAX_STRIPES:
        return f"expected at most {MAX_STRIPES} stripes in one request, found {total}"
    return ""


def memory_bytes(request: AllocationRequest) -> int:
    """About what a request that waits keeps in memory."""
    components = sum(len(layout.components) for layout in request.layouts)
    return 1_000 + 100 * len(request.files) + 100 * len(request.layouts) + 300 * components


def promised_stripes(request: AllocationRequest) -> int:
    """How many stripes the ledger will hold: those of the components that the forecast reaches."""
    counts: dict[tuple[int, int], int] = {}
    for file in set(request.files):
        layout = request.layouts[file.layout]
        reached = layout.components[: layout.covered(file.size_bytes)]
        counts[file.layout, file.size_bytes] = sum(c.stripe_count for c in reached)
    return sum(counts[file.layout, file.size_bytes] for file in request.files)


def requests_of(request: AllocationRequest) -> list[CreateRequest]:
    """Its files as the allocator knows them."""
    own = [request.layouts[n] for n in request.own] or request.layouts
    return [
        CreateRequest(
            f.size_bytes,
            layout := request.layouts[f.layout],
            None if own[f.layout] == layout else own[f.layout],
            f.writers,
        )
        for f in request.files
    ]


def alive_s(request: AllocationRequest) -> float:
    """After how much silence its step counts as dead; 0: never."""
    return clamped_alive_s(request.alive_s)


def clamped_alive_s(seconds: float) -> float:
    """What mdsd takes of a step's `alive_s`; 0: never."""
    return min(max(seconds, MIN_ALIVE_S), MAX_ALIVE_S) if seconds > 0 else 0.0


def promises(files: Sequence[CreateRequest], allocation: Allocation) -> Iterator[dict[int, int]]:
    """For each file: OST index → bytes that the forecast puts there. Start hints promise nothing."""
    sizes: dict[tuple[Layout, int], list[tuple[int, ...]]] = {}
    for file, placement in zip(files, allocation.files, strict=True):
        key = (file.layout, file.size_bytes)
        if key not in sizes:
            sizes[key] = promised_bytes(file.layout, file.size_bytes)
        by_ost: dict[int, int] = {}
        for weights, osts in zip(sizes[key], placement.osts):
            for weight, ost in zip(weights, osts):
                by_ost[ost] = by_ost.get(ost, 0) + weight
        yield by_ost


def reply_of(request: AllocationRequest, allocation: Allocation, view_age_s: float) -> AllocationReply:
    """The answer of an allocator to this request alone."""
    left: dict[Left, list[int]] = {}
    for index, why in allocation.left.items():
        left.setdefault(why, []).append(index)
    return AllocationReply(
        request.id,
        "allocated",
        osts=tuple(file.osts for file in allocation.files),
        policy=allocation.policy,
        ost_cost=allocation.ost_cost,
        ost_cost_bound=allocation.ost_cost_bound,
        elapsed_s=allocation.elapsed_s,
        expected_s=allocation.expected_s,
        expected_requests_s=allocation.expected_requests_s,
        expected_gain=allocation.expected_gain,
        view_age_s=view_age_s,
        left=tuple(LeftFiles(why.why, why.never, tuple(files)) for why, files in left.items()),
    )
