"""Distances from nodes to their I/O nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.bursts.mapping.hops import grid, mean, read
from tarazu.parts.bursts.mapping.simple import contiguous, round_robin
from tarazu.parts.bursts.traffic.machine import regular

MACHINE = regular(8, 2)
"""4 cabinets, c0 to c3, and io0 to io3."""
TREE = """
SwitchName=leaf1 Nodes=n[0-3],io[0-1]
SwitchName=leaf2 Nodes=n[4-7],io[2-3]
SwitchName=top Switches=leaf[1-2]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hops"
    path.write_text(text)
    return path


def test_a_grid_of_boards() -> None:
    """By hand: 2 hops in one row or column, else 4."""
    found = grid([(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 0), (1, 1)])
    assert found.tolist() == [[2, 4], [2, 2], [2, 2], [4, 2]]


def test_the_tree_of_slurms_topology(tmp_path: Path) -> None:
    """One leaf: 0; over the top: 2."""
    hops = read(written(tmp_path, TREE), MACHINE)
    assert hops.tolist() == [[0, 0, 2, 2]] * 2 + [[2, 2, 0, 0]] * 2
    assert mean(contiguous(8, 4), MACHINE, hops) == 0.0
    assert mean(round_robin(8, 4), MACHINE, hops) == 1.0


def test_a_table_with_names_folded(tmp_path: Path) -> None:
    hops = read(written(tmp_path, "* * 4  # far\nc[0-1] io[0-1] 2\nc3 io3 0.5\n"), MACHINE)
    assert hops.tolist() == [[2, 2, 4, 4], [2, 2, 4, 4], [4, 4, 4, 4], [4, 4, 4, 0.5]]


def test_nodes_without_an_io_node_do_not_count() -> None:
    hops = np.full((4, 4), 3.0)
    assert mean(np.array([-1, 0, 0, 0, 0, 0, 0, 0], np.int32), MACHINE, hops) == 3.0
    assert np.isnan(mean(np.full(8, -1, np.int32), MACHINE, hops))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("c0 io0\n", "hops:1: expected a line such as"),
        ("c0 io0 near\n", "hops:1: expected hops from 0"),
        ("* * 4\nc9 io0 1\n", "hops:2: expected names that the machine has, found 'c9'"),
        ("c0 * 2\n", "none from c1 to io0"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "a leaf switch of each cabinet"),
        ("SwitchName=a Nodes=n[0-7]\nSwitchName=b Nodes=io[0-3]\n", "expected one tree of switches"),
        (TREE + "SwitchName=leaf1 Switches=top\n", "expected a tree of switches"),
        (TREE + "Nodes=n1\n", "hops:5: expected a line such as SwitchName"),
    ],
    ids=["words", "number", "name", "missing", "empty", "apart", "circle", "line"],
)
def test_what_is_no_topology_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read(written(tmp_path, text), MACHINE)


@settings(max_examples=40, deadline=None)
@given(text=st.text(alphabet="SwitchName=top Nodes[0-9],*\nc.io#\x00é", max_size=80))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-hops"
    path.write_text(text)
    try:
        assert read(path, MACHINE).shape == (4, 4)
    except BadInput as error:
        assert len(str(error)) < 400
