"""The nodes of an optimizable job, or why it is left to Slurm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.bursts.nodes.selection import Left, NodeChoice, SelectionOptions, Wish, choose, loads, span
from tarazu.parts.bursts.nodes.slurm_fit import FITS
from tarazu.parts.bursts.traffic.machine import Machine, regular

MACHINE = regular(512, 32)
"""16 I/O nodes."""
ALL = np.ones(512, dtype=bool)


def served(machine: Machine, choice: NodeChoice | Left) -> list[int]:
    """Nodes of each I/O node that the choice uses."""
    assert isinstance(choice, NodeChoice)
    counts = np.bincount(machine.served_by[list(choice.nodes)], minlength=len(machine.io_nodes))
    assert np.count_nonzero(counts) == choice.io_nodes
    return [n for n in counts.tolist() if n]


def test_even_node_eight_nodes_an_io_node() -> None:
    choice = choose(MACHINE, ALL, Wish(64))
    assert served(MACHINE, choice) == [8] * 8
    assert isinstance(choice, NodeChoice)
    assert choice.strategy == "even node"
    assert list(choice.nodes) == sorted(choice.nodes)


@pytest.mark.parametrize(("next_size", "io_nodes"), [(None, 10), (63, 10), (64, 8), (256, 8), (257, 5)])
def test_what_is_kept_for_the_next_job_follows_its_size(next_size: int | None, io_nodes: int) -> None:
    """16 I/O nodes have idle nodes: 1/3, 1/2 or 2/3 of them are left alone."""
    choice = choose(MACHINE, ALL, Wish(128, None, next_size))
    assert isinstance(choice, NodeChoice)
    assert choice.io_nodes == io_nodes


def test_where_too_little_could_be_kept_the_job_comes_first() -> None:
    """2/3 of 3 I/O nodes kept would leave 1, which Slurm's own choice has too: it gets one more."""
    assert span(24, 3, 1, 1, 1000, 8) == 2


def test_where_slurm_has_as_many_io_nodes_it_is_left_to_slurm() -> None:
    """Two idle nodes a cabinet: 16 nodes are on 8 I/O nodes anyway."""
    idle = np.arange(512) % 32 < 2
    left = choose(MACHINE, idle, Wish(16))
    assert isinstance(left, Left)
    assert "8 I/O nodes" in left.why


def test_not_so_many_idle_is_left() -> None:
    assert isinstance(choose(MACHINE, ~ALL, Wish(16)), Left)
    unknown = dataclasses.replace(MACHINE, served_by=np.where(np.arange(512) < 40, MACHINE.served_by, -1))
    assert isinstance(choose(unknown, ALL, Wish(41)), Left)


def test_even_traffic_has_less_in_the_busiest_io_node_than_even_node() -> None:
    shares = tuple(range(1, 65))  # figure 13c: it grows with the rank
    choice = choose(MACHINE, ALL, Wish(64, shares))
    by_number = choose(MACHINE, ALL, Wish(64))
    assert isinstance(choice, NodeChoice) and isinstance(by_number, NodeChoice)
    assert choice.strategy == "even traffic"
    busiest = [float(loads(MACHINE, c.nodes, shares).max()) for c in (by_number, choice)]
    assert busiest[0] == pytest.approx(sum(range(57, 65)) / sum(shares))
    assert busiest[1] < 0.65 * busiest[0]
    assert len(served(MACHINE, choice)) == 8


def test_io_nodes_with_less_traffic_come_first() -> None:
    load = np.ones(16)
    load[[2, 5, 7, 11]] = 0
    choice = choose(MACHINE, ALL, Wish(32), load=load)
    assert isinstance(choice, NodeChoice)
    assert set(MACHINE.served_by[list(choice.nodes)].tolist()) == {2, 5, 7, 11}


def test_where_its_busiest_io_node_would_be_no_less_busy_it_is_left_to_slurm() -> None:
    """Slurm's own choice is an I/O node where nobody else is; each spread has one that serves others."""
    load = np.full(16, 0.9)
    load[0] = 0.0
    wish = Wish(32)
    assert isinstance(choose(MACHINE, ALL, wish), NodeChoice)
    left = choose(MACHINE, ALL, wish, load=load)  # 0.9 and a quarter of this job, instead of all of it
    assert isinstance(left, Left)
    assert "no less busy" in left.why
    assert isinstance(choose(MACHINE, ALL, wish, load=load / 2), NodeChoice)


def test_large_holes_stay_whole() -> None:
    """Cabinets in which others run already hold the job: the empty ones are left for large jobs."""
    idle = ALL.copy()
    idle[:128] = np.arange(128) % 32 < 10
    choice = choose(MACHINE, idle, Wish(32))
    assert isinstance(choice, NodeChoice)
    assert max(choice.nodes) < 128


@given(st.data())
def test_idle_nodes_each_once_on_more_io_nodes_than_slurms_own(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    idle = np.repeat(rng.random(128) < rng.random(), 4)
    served_by = MACHINE.served_by if rng.random() < 0.5 else rng.integers(-1, 16, 512).astype(np.int32)
    machine = dataclasses.replace(MACHINE, served_by=served_by)
    nodes = int(rng.integers(1, 200))
    shares = tuple(rng.pareto(1.2, nodes).tolist()) if rng.random() < 0.7 else None
    options = SelectionOptions(fit=str(rng.choice(["tree", "consecutive"])))
    choice = choose(machine, idle, Wish(nodes, shares, int(rng.integers(1, 400))), options, rng.random(16))
    if isinstance(choice, Left):
        return
    at = list(choice.nodes)
    assert len(set(at)) == nodes
    assert idle[at].all()
    assert (machine.served_by[at] >= 0).all()
    assert at == sorted(at)
    served = machine.served_by
    assert choice.io_nodes == len(set(served[at].tolist()))
    assert choice.io_nodes > len(set(served[FITS[options.fit](machine, idle, nodes)].tolist()))
    room = np.sort(np.bincount(served[idle & (served >= 0)]))[::-1]
    assert choice.io_nodes <= max(nodes // 8, np.searchsorted(np.cumsum(room), nodes) + 1)
