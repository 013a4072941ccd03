"""Node selection in a replay: who is placed, and that the figures are of those."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tarazu.parts.bursts.nodes.selection import SelectionOptions
from tarazu.parts.bursts.study.generator import queue
from tarazu.parts.bursts.study.selection_study import OWN, Chosen, Learned, SelectorPolicy, study
from tarazu.parts.bursts.traffic.machine import regular

SPREAD = SelectorPolicy("even traffic", SelectionOptions())


def test_an_application_is_known_after_its_sixth_job() -> None:
    jobs = queue("cs19", 300, 1)
    alike = dataclasses.replace(
        jobs,
        application=np.zeros_like(jobs.application),
        size=np.full_like(jobs.size, 32),
        volume=np.full_like(jobs.volume, 1e12),
        network=np.full_like(jobs.network, 1e11),
    )
    parts = [np.full(32, 1 / 32)] * len(jobs)
    learned = Learned(alike, parts)
    for job in range(6):
        assert not learned.optimizable(job)
        learned.ended(job)
    assert learned.optimizable(6)
    known = learned.of(6)
    assert known is not None
    assert known.shares == pytest.approx([1 / 32] * 32)


def test_only_known_jobs_are_placed_others_have_slurms_choice() -> None:
    machine = regular(512, 32)
    jobs = queue("cs19", 300, 1)
    jobs = dataclasses.replace(jobs, size=np.full_like(jobs.size, 32), application=np.arange(300) % 2)
    parts = [np.full(32, 1 / 32)] * len(jobs)
    chosen = Chosen(machine, jobs, parts, SelectorPolicy("with loads", SelectionOptions(), loads=True))
    volume, network = jobs.volume, jobs.network
    volume[0::2], network[0::2], volume[1::2], network[1::2] = (
        1e12,
        1e11,
        1e6,
        1e5,
    )  # every other is data-intensive
    idle = np.ones(512, dtype=np.bool_)
    assert len(set(machine.cabinet[chosen.nodes(idle, 20, [])])) == 1
    for job in range(20):
        chosen.ended(job)
    first, second = chosen.nodes(idle, 22, []), chosen.nodes(idle, 24, [])
    assert [len(set(machine.cabinet[n])) for n in (first, second, chosen.nodes(idle, 23, []))] == [4, 4, 1]
    assert not set(machine.cabinet[first]) & set(
        machine.cabinet[second]
    )  # where less is expected comes first
    assert np.flatnonzero(chosen.chosen).tolist() == [22, 24]
    chosen.ended(22)
    assert set(machine.cabinet[chosen.nodes(idle, 26, [])]) == set(machine.cabinet[first])


def test_only_optimizable_jobs_of_the_queue_have_io_nodes_kept_for_them() -> None:
    machine = regular(512, 32)
    drawn = queue("cs19", 300, 1)
    even = np.arange(300) % 2 == 0
    jobs = dataclasses.replace(
        drawn,
        size=np.where(np.arange(300) >= 200, 100, 32),
        application=np.where(np.arange(300) >= 200, 2, 0) + ~even,
        volume=np.where(even, 1e12, 1e6),
        network=np.where(even, 1e11, 1e5),
    )
    parts = [np.full(n, 1 / n) for n in jobs.size.tolist()]
    chosen = Chosen(machine, jobs, parts, SelectorPolicy("span", SelectionOptions()))
    for job in (*range(20), *range(200, 220)):
        chosen.ended(job)
    idle = np.arange(512) < 6 * 32
    # 1/3 of six cabinets is kept; 2/3 where a job of 100 nodes comes that is optimizable too
    waiting = ([], [201], [201, 202], [202])
    assert [len(set(machine.cabinet[chosen.nodes(idle, 20, w)])) for w in waiting] == [4, 4, 2, 2]


def test_figures_of_a_small_queue() -> None:
    found = study("cs19", 900, policies=(OWN, SPREAD), nodes=4)
    own, spread = found.outcomes
    assert (found.nodes, found.io_nodes) == (11392, 89)
    assert own.chosen == 0
    assert math.isnan(own.io_nodes)
    assert 0 < spread.chosen <= spread.optimizable
    assert spread.io_nodes > spread.own_io_nodes
    for outcome in found.outcomes:
        assert 0 < outcome.others_least_cabinets <= 1
