"""Jobs of the machine of 8 cabinets with 64 nodes each, as on Tianhe-1A; and cabinets of unequal size."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.characteristics import Character, JobBytes, Places, character
from tarazu.parts.bursts.measures.day import Share, of_jobs
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.units import GIB

MACHINE = regular(512, 64)
PLACES = Places(MACHINE)


def job(moved: list[int], nodes: list[int] | None = None, network: int | None = None) -> Character:
    names = [MACHINE.nodes[i] for i in (nodes if nodes is not None else range(len(moved)))]
    batch_job = Job("1", "ann", "model", tuple(names), 0, 100)
    return character(JobBytes(batch_job, np.array(moved), network), PLACES)


def test_one_node_with_more_than_95_percent_is_rank_0() -> None:
    assert job([95, 5]).all_rank
    assert not job([95, 5]).rank_0
    found = job([9501, 499])
    assert found.rank_0
    assert not found.all_rank


def test_a_job_that_moved_nothing_has_neither_pattern() -> None:
    found = job([0, 0, 0])
    assert (found.rank_0, found.all_rank, found.even, found.intensive) == (False, False, True, False)


def test_cabinets_that_it_stands_in_and_the_least_it_could() -> None:
    within = job([1] * 64)
    assert (within.cabinets, within.least_cabinets, within.concentrated) == (1, 1, True)
    over = job([1] * 64, list(range(32, 96)))
    assert (over.cabinets, over.least_cabinets, over.concentrated, over.cabinets_even) == (2, 1, False, True)
    three = job([1] * 65, [*range(60, 124), 128])
    assert (three.cabinets, three.least_cabinets, three.cabinets_even) == (3, 2, False)


def test_a_node_that_is_not_of_the_machine_leaves_cabinets_unknown() -> None:
    batch_job = Job("1", "ann", "model", ("n000", "elsewhere"), 0, 100)
    found = character(JobBytes(batch_job, np.array([1, 1])), PLACES)
    assert (found.cabinets, found.concentrated, found.cabinets_even) == (None, None, None)
    assert found.all_rank


def test_communication_is_unknown_where_nobody_counted() -> None:
    assert job([20 * GIB, 20 * GIB]).low_communication is None
    assert job([20 * GIB, 20 * GIB], network=GIB).low_communication is True
    assert job([20 * GIB, 20 * GIB], network=41 * GIB).low_communication is False


@pytest.mark.parametrize(
    "moved, network, expected",
    [
        ([20 * GIB] * 2, GIB, True),
        ([20 * GIB] * 2, None, True),
        ([20 * GIB] * 2, 50 * GIB, False),
        ([40 * GIB, 0], None, False),  # rank 0
        ([GIB] * 2, None, False),  # too little
    ],
    ids=["all", "unknown", "communicates", "rank-0", "little"],
)
def test_optimizable(moved: list[int], network: int | None, expected: bool) -> None:
    assert job(moved, network=network).optimizable is expected


def test_shares_of_jobs_by_hand() -> None:
    jobs = [
        job([100 * GIB]),  # one node
        job([30 * GIB, 30 * GIB], network=1),  # even, in one cabinet
        job([9 * GIB, GIB], [0, 64]),  # uneven, in two cabinets, as many in each
        job([GIB, 0], [0, 1]),  # rank 0
        job([0, 0, 0, 0, 0], [0, 1, 2, 3, 64]),  # nothing moved, nodes lie unevenly
    ]
    found = of_jobs(jobs)
    assert (found.jobs, found.multi_node, found.bytes) == (5, 4, 171 * GIB)
    assert found.rank_0 == Share(1, 3)
    assert found.even == Share(1, 2)
    assert found.concentrated == Share(2, 4)
    assert found.cabinets_uneven == Share(1, 2)
    assert found.intensive == Share(2, 5)
    assert found.intensive_bytes == Share(160 * GIB, 171 * GIB)
    assert found.all_rank == Share(2, 5)
    assert found.low_communication == Share(1, 1)
    assert found.optimizable == Share(1, 5)
