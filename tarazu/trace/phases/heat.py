"""Parts of which Darshan's HEATMAP shows pauses: one file that was used again and again becomes several parts.

The heatmap has the bytes of each rank and interface by slices of time, of all files together. So a part is split where
nothing else of its rank moved bytes by that interface in the slices between its first and last access.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.model import ANY_RANK
from tarazu.trace.darshan.log import Heat
from tarazu.trace.phases.phase import PhasePart

_MISSED = 0.01
"""Share of a part's bytes that rounding to slices may lose."""


class _Stretch(msgspec.Struct):
    """Slices without a pause between them."""

    start_s: float
    end_s: float
    bytes: int
    parts: int = 0
    """Those whose time it touches."""


def split(parts: Sequence[PhasePart], heats: Sequence[Heat], distance_s: float) -> Iterator[PhasePart]:
    """`parts` of one interface, those in several pieces that paused for more than `distance_s`."""
    groups: defaultdict[tuple[int, str], list[PhasePart]] = defaultdict(list)
    for part in parts:
        groups[part.rank, part.operation].append(part)
    by_rank = {heat.rank: heat for heat in heats}
    for (rank, operation), of in groups.items():
        if rank == ANY_RANK:
            alone = sum(number for number, each in _numbers(groups) if each == operation) == len(of)
            chosen = heats if alone else ()
        else:
            chosen = [by_rank[rank]] if rank in by_rank else ()
        # What is short or busy all the time has no pause.
        worth = any(part.end_s - part.start_s > distance_s + part.io_s for part in of)
        stretches = _stretches(chosen, operation == "write", distance_s) if worth else []
        for part in of:
            for one in _touched(part, stretches):
                one.parts += 1
        for part in of:
            yield from _pieces(part, _touched(part, stretches))


def _numbers(groups: dict[tuple[int, str], list[PhasePart]]) -> Iterator[tuple[int, str]]:
    return ((len(of), operation) for (_, operation), of in groups.items())


def _stretches(heats: Iterable[Heat], writes: bool, distance_s: float) -> list[_Stretch]:
    heats = list(heats)
    if not heats or len({heat.width_s for heat in heats}) > 1:
        return []
    width = heats[0].width_s
    slices: NDArray[np.int64] = np.zeros(max(len(heat.written) for heat in heats), np.int64)
    for heat in heats:
        moved = heat.written if writes else heat.read
        slices[: len(moved)] += moved
    stretches: list[_Stretch] = []
    for at in np.flatnonzero(slices).tolist():
        start = at * width
        if stretches and start - stretches[-1].end_s <= distance_s:
            stretches[-1].end_s = start + width
            stretches[-1].bytes += int(slices[at])
        else:
            stretches.append(_Stretch(start, start + width, int(slices[at])))
    return stretches


def _touched(part: PhasePart, stretches: Sequence[_Stretch]) -> list[_Stretch]:
    return [one for one in stretches if one.start_s < part.end_s and part.start_s < one.end_s]


def _pieces(part: PhasePart, stretches: Sequence[_Stretch]) -> Iterator[PhasePart]:
    total = sum(one.bytes for one in stretches)
    known = len(stretches) > 1 and all(one.parts == 1 for one in stretches)
    if not known or abs(total - part.bytes) > _MISSED * part.bytes:
        yield part
        return
    before = 0
    for one in stretches:
        after = before + one.bytes

        def share(whole: int, after: int = after, before: int = before) -> int:
            return round(whole * after / total) - round(whole * before / total)

        requests = max(share(part.requests), 1)
        # The heatmap loses a byte here and there: of requests of one size the number is the better measure.
        exact = len(part.sizes) == 1 and part.sizes[0][0] * part.requests == part.bytes
        start, end = max(part.start_s, one.start_s), min(part.end_s, one.end_s)
        yield msgspec.structs.replace(
            part,
            start_s=start,
            end_s=end,
            bytes=requests * part.sizes[0][0] if exact else share(part.bytes),
            io_s=min(part.io_s * one.bytes / total, end - start),
            requests=requests,
            consecutive=share(part.consecutive) if part.consecutive > 0 else part.consecutive,
            sequential=share(part.sequential) if part.sequential > 0 else part.sequential,
            opens=share(part.opens),
            collective=share(part.collective),
            sizes=tuple((size, n) for size, number in part.sizes if (n := share(number))),
            timed=True,
        )
        before = after
