from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarazu.model import ANY_RANK
from tarazu.trace.darshan.log import Heat
from tarazu.trace.phases.heat import split
from tarazu.trace.phases.phase import PhasePart


def part(file: str, rank: int, start: float, end: float, size: int = 60, **more: Any) -> PhasePart:
    return PhasePart(
        file=file, api="POSIX", operation="write", rank=rank, ranks=4 if rank == ANY_RANK else 1, start_s=start,
        end_s=end, bytes=size, io_s=0.3, requests=6, consecutive=3, sequential=3, opens=3, **more,
    )  # fmt: skip


def heat(rank: int, *at: tuple[int, int]) -> Heat:
    slices: NDArray[np.int64] = np.zeros(100, np.int64)
    for slice, size in at:
        slices[slice] = size
    return Heat("POSIX", rank, 0.5, slices, np.zeros(100, np.int64))


THREE = heat(0, (2, 10), (3, 10), (20, 20), (40, 20))


def test_a_file_used_again_is_several_parts() -> None:
    found = list(split([part("a", 0, 1.2, 20.1)], [THREE], 1.0))
    assert [(p.start_s, p.end_s, p.bytes, p.requests, p.opens) for p in found] == [
        (1.2, 2.0, 20, 2, 1),
        (10.0, 10.5, 20, 2, 1),
        (20.0, 20.1, 20, 2, 1),
    ]
    assert all(p.timed and p.consecutive == 1 for p in found)
    assert len(list(split([part("a", 0, 1.2, 20.1)], [THREE], 10.0))) == 1


def test_what_is_not_known_for_certain_stays_whole() -> None:
    one = part("a", 0, 1.2, 20.1)
    for others, heats in (
        ([part("b", 0, 9.0, 11.0)], [THREE]),  # whose bytes are those at 10 s?
        ([], [heat(0, (2, 10), (20, 20))]),  # some are not there
        ([], [heat(1, (2, 20), (20, 20), (40, 20))]),
        ([], []),
    ):
        assert one in list(split([one, *others], heats, 1.0))


def test_a_shared_file_by_the_heat_of_all_ranks() -> None:
    shared = part("a", ANY_RANK, 1.0, 20.5, 120)
    heats = [THREE, heat(3, (3, 20), (20, 20), (40, 20))]
    assert [p.bytes for p in split([shared], heats, 1.0)] == [40, 40, 40]
    own = part("b", 2, 0.0, 1.0)
    assert list(split([shared, own], heats, 1.0)) == [shared, own], (
        "part of the heat may be that of the other file"
    )


def test_requests_of_one_size_are_not_cut() -> None:
    lost = heat(0, (2, 20), (20, 19), (40, 20))
    found = list(split([part("a", 0, 1.0, 20.5, 60, sizes=((10, 6),))], [lost], 1.0))
    assert [(p.bytes, p.requests, p.sizes) for p in found] == [(60, 6, ((10, 6),))], (
        "a byte of 60 is too many"
    )
    exact = heat(0, (2, 2000), (20, 1999), (40, 2000))
    found = list(split([part("a", 0, 1.0, 20.5, 6000, sizes=((1000, 6),))], [exact], 1.0))
    assert [(p.bytes, p.requests, p.sizes) for p in found] == [(2000, 2, ((1000, 2),))] * 3
