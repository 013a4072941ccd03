"""Contiguous and i % n."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.bursts.mapping.simple import contiguous, moved, round_robin


def test_the_papers_formulas() -> None:
    """⌊i / (m / n)⌋ and i % n, with 8 nodes on 4 I/O nodes, as figure 9 draws them."""
    assert contiguous(8, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert round_robin(8, 4).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert moved(contiguous(8, 4), round_robin(8, 4)) == 6


@given(st.integers(0, 700), st.integers(1, 100))
def test_each_io_node_serves_as_many_as_the_others(nodes: int, io_nodes: int) -> None:
    for mapping in (contiguous(nodes, io_nodes), round_robin(nodes, io_nodes)):
        counts = np.bincount(mapping, minlength=io_nodes)
        assert len(counts) == io_nodes and counts.max() - counts.min() <= 1


def test_who_has_no_io_node_is_not_moved() -> None:
    assert moved(np.array([-1, 0], np.int32), np.array([1, 1], np.int32)) == 1


def test_no_io_node() -> None:
    with pytest.raises(BadInput, match="expected an I/O node at least"):
        contiguous(8, 0)
