"""Contiguous and i % n, and what they give on traffic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.bursts.mapping.mappings import contiguous, judge, moved, round_robin
from tarazu.parts.bursts.measures.report import of_mapping
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(400, 20)
BURSTS = st.lists(st.dictionaries(st.integers(0, 399), st.integers(1, 10**12), max_size=30), max_size=6)


def test_the_papers_formulas() -> None:
    """⌊i / (m / n)⌋ and i % n, with 8 nodes on 4 I/O nodes, as figure 9 draws them."""
    assert contiguous(8, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert round_robin(8, 4).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert moved(contiguous(8, 4), round_robin(8, 4)) == 6
    assert moved(np.array([-1, 0], np.int32), np.array([1, 1], np.int32)) == 1, "who has none is not moved"
    with pytest.raises(BadInput, match="expected an I/O node at least"):
        contiguous(8, 0)


@given(st.integers(0, 700), st.integers(1, 100))
def test_each_io_node_serves_as_many_as_the_others(nodes: int, io_nodes: int) -> None:
    for mapping in (contiguous(nodes, io_nodes), round_robin(nodes, io_nodes)):
        counts = np.bincount(mapping, minlength=io_nodes)
        assert len(counts) == io_nodes and counts.max() - counts.min() <= 1


def test_a_cabinet_that_bursts_alone() -> None:
    """By hand: 20 nodes alike; all on one of 20 I/O nodes, or one on each; the busiest two of 20 count."""
    chunks = [traffic(MACHINE, [dict.fromkeys(range(20), 100), {7: 10, 8: 10}])]
    shares = judge({"contiguous": contiguous(400, 20), "round robin": round_robin(400, 20)}, chunks, MACHINE)
    found = {name: of_mapping(shares, its) for name, its in shares.mapped.items()}
    assert found["contiguous"]["busiest"]["mean"] == 1.0 == found["contiguous"]["of_busiest"]
    assert found["round robin"]["busiest"]["mean"] == pytest.approx((0.1 + 1.0) / 2)
    assert found["round robin"]["busiest"]["of_bytes"] == pytest.approx((0.1 * 2000 + 20) / 2020)
    assert found["round robin"]["of_busiest"] == pytest.approx((4 + 2) / 2), "1 % of 400 nodes are 4"


@settings(max_examples=12)
@given(BURSTS, st.integers(0, 60))
def test_where_chunks_are_cut_does_not_matter(bursts: list[dict[int, int]], at: int) -> None:
    whole = traffic(MACHINE, bursts)
    at = min(at, len(whole))
    parts = [
        Traffic(whole.nodes, 10.0, *(c[rows] for c in (whole.time_s, whole.node, whole.read, whole.written)))
        for rows in (slice(0, at), slice(at, None))
    ]
    mappings = {"one": round_robin(400, 20)}
    one, other = (judge(mappings, chunks, MACHINE) for chunks in ([whole], parts))
    assert one.mapped["one"].busiest.tolist() == pytest.approx(other.mapped["one"].busiest.tolist())
