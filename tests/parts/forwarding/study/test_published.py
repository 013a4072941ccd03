"""The measured curves: as paper A and their source say, and nothing lost on the way."""

from __future__ import annotations

from statistics import median

from tarazu.parts.forwarding.study.published import NUMBERS, published
from tarazu.units import KIB, MIB


def test_there_are_as_many_as_the_paper_says_each_once() -> None:
    curves = published()
    assert len({of.name for of in curves}) == len(curves) == 189
    for of in curves:
        assert tuple(p.resources for p in of.curve.points) == NUMBERS
        assert all(len(p.bytes_per_s) >= 4 for p in of.curve.points) and of.direct_bytes_per_s
        assert of.nodes < of.processes and 32 * KIB <= of.request_bytes <= 8 * MIB
    assert sum(of.strided for of in curves) == 63 and not any(of.strided and not of.shared for of in curves)


def test_the_first_row_is_the_files() -> None:
    first = published()[0]
    assert first.name == "per-process-contiguous-32k-96p-8n"
    assert first.curve.points[1].bytes_per_s == (338.6e6, 411.3e6, 441.1e6, 451.5e6, 480.7e6)


def test_more_io_nodes_help_files_of_processes_and_hurt_most_shared_ones() -> None:
    """What is seen in the paper's figure 1: some rise, some fall, some both."""
    best = {of.name: max(of.curve.points, key=lambda p: p.median).resources for of in published()}
    assert all(best[of.name] == 8 for of in published() if not of.shared)
    assert median(best[of.name] for of in published() if of.shared) == 2
