"""How good a placement is, once all files have their OSTs: OST cost, OSS cost, modelled completion time, final fill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tarazu.allocate.eligible import speed_of
from tarazu.layout.objects import component_object_bytes
from tarazu.model import CreateRequest, FilePlacement, SystemView


def ost_bytes(
    view: SystemView, requests: Sequence[CreateRequest], files: Iterable[FilePlacement]
) -> dict[int, int]:
    """Bytes that the forecast sizes put on each usable OST, by OST index; hints do not count."""
    placed = {o.index: 0 for o in view.osts if o.usable}
    sizes: dict[CreateRequest, list[tuple[int, ...]]] = {}
    for request, file in zip(requests, files, strict=True):
        objects = sizes.get(request)
        if objects is None:
            covered = request.layout.components[: request.layout.covered(request.size_bytes)]
            objects = sizes[request] = [component_object_bytes(c, request.size_bytes) for c in covered]
        for weights, osts in zip(objects, file.osts, strict=False):
            for weight, ost in zip(weights, osts, strict=True):
                placed[ost] = placed.get(ost, 0) + weight
    return placed


def ost_cost(placed: dict[int, int]) -> float:
    """Max / mean of the bytes per OST (paper, equation 4); 1 when nothing was placed."""
    total = sum(placed.values())
    return max(placed.values()) * len(placed) / total if total else 1.0


def oss_cost(view: SystemView, placed: dict[int, int]) -> float:
    """Max / mean over servers of the bytes per OST of that server (paper, section 7.3)."""
    total = sum(placed.values())
    per_oss: dict[str, list[int]] = {}
    for ost in view.osts:
        if ost.index in placed:
            per_oss.setdefault(ost.oss, []).append(placed[ost.index])
    if not total:
        return 1.0
    return max(sum(v) / len(v) for v in per_oss.values()) * len(placed) / total


def completion_time_s(view: SystemView, placed: dict[int, int]) -> float:
    """When the last OST has written its bytes, all starting at once, each at its own throughput."""
    rates = speed_of(view)
    return max((size / rates[ost] for ost, size in placed.items()), default=0.0)


def final_fill(view: SystemView, placed: dict[int, int]) -> float:
    """Max / mean of the fill (used + promised + placed, over total) of the usable OSTs."""
    osts = [o for o in view.osts if o.index in placed]
    filled = [o.used_bytes + o.promised_bytes + placed[o.index] for o in osts]
    mean = sum(filled) / sum(o.total_bytes for o in osts)
    return max(f / o.total_bytes for f, o in zip(filled, osts)) / mean if mean else 1.0
