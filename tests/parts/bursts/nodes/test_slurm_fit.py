"""What Slurm takes by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.bursts.nodes.slurm_fit import FITS, Flags, consecutive, tree
from tarazu.parts.bursts.traffic.machine import regular

MACHINE = regular(32, 8)


def idle(*ranges: tuple[int, int]) -> Flags:
    flags = np.zeros(32, dtype=bool)
    for first, end in ranges:
        flags[first:end] = True
    return flags


def test_no_run_holds_it_the_largest_and_then_the_smallest_that_holds_the_rest() -> None:
    flags = idle((0, 3), (5, 12), (20, 22))
    assert consecutive(MACHINE, flags, 9).tolist() == [*range(5, 12), 20, 21]  # type: ignore[union-attr]


def test_runs_go_over_the_edge_of_a_cabinet_leaf_switches_do_not() -> None:
    flags = idle((5, 11), (16, 20))
    assert consecutive(MACHINE, flags, 5).tolist() == [5, 6, 7, 8, 9]  # type: ignore[union-attr]
    assert tree(MACHINE, flags, 5).tolist() == [5, 16, 17, 18, 19]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(FITS))
@given(flags=st.lists(st.booleans(), min_size=32, max_size=32), nodes=st.integers(0, 34))
def test_idle_nodes_each_once_ascending_or_none(name: str, flags: list[bool], nodes: int) -> None:
    free = np.array(flags)
    taken = FITS[name](MACHINE, free, nodes)
    if not 0 < nodes <= free.sum():
        assert taken is None
        return
    assert taken is not None
    assert len(taken) == nodes
    assert free[taken].all()
    assert (np.diff(taken) > 0).all()


@given(flags=st.lists(st.booleans(), min_size=32, max_size=32), nodes=st.integers(1, 32))
def test_a_tree_takes_the_least_number_of_leaf_switches(flags: list[bool], nodes: int) -> None:
    free = np.array(flags)
    taken = tree(MACHINE, free, nodes)
    if taken is None:
        return
    room = np.sort(np.bincount(MACHINE.cabinet[free], minlength=4))[::-1]
    assert len(set(MACHINE.cabinet[taken])) == np.searchsorted(np.cumsum(room), nodes) + 1
