"""Whose bytes they are; beside a count that looks at each job, node and interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.characteristics import JobBytes, Places
from tarazu.parts.bursts.measures.intervals import intervals
from tarazu.parts.bursts.measures.job_bytes import Attribution
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic

MACHINE = regular(4, 2)
PLACES = Places(MACHINE)


def job(nodes: Sequence[int], start_s: float, end_s: float, name: str = "model") -> Job:
    return Job("1", "ann", name, tuple(MACHINE.nodes[n] for n in nodes), start_s, end_s)


def given_to(
    jobs: Sequence[Job], rows: Sequence[tuple[int, int, int]], network: Sequence[int] | None = None
) -> list[JobBytes]:
    """rows: time, node, bytes."""
    columns = np.array(rows, np.int64).reshape(-1, 3)
    counted = None if network is None else np.array(network, np.int64)
    node = columns[:, 1].astype(np.int32)
    chunk = Traffic(MACHINE.nodes, 10.0, columns[:, 0], node, columns[:, 2], columns[:, 2] * 0, counted)
    attribution = Attribution(jobs, PLACES)
    for each in intervals([chunk], PLACES):
        attribution.add(each)
    return attribution.result()


def moved(*arguments: object) -> list[list[int]]:
    return [found.bytes.tolist() for found in given_to(*arguments)]  # type: ignore[arg-type]


def test_a_job_that_was_alone_gets_the_whole_of_its_first_and_last_interval() -> None:
    assert moved([job([0], 7, 23)], [(0, 0, 5), (10, 0, 6), (20, 0, 7), (30, 0, 8)]) == [[18]]


def test_an_interval_of_two_jobs_is_shared_by_their_seconds() -> None:
    one, other = job([0], 0, 12), job([0], 14, 40)
    assert moved([one, other], [(0, 0, 50), (10, 0, 80), (20, 0, 30)]) == [[50 + 20], [60 + 30]]


def test_a_running_job_has_all_so_far() -> None:
    assert moved([job([0], 5, float("inf"))], [(0, 0, 1), (10, 0, 2)]) == [[3]]


def test_nodes_that_the_machine_does_not_know_have_nothing() -> None:
    stranger = Job("1", "ann", "model", ("elsewhere", "n0"), 0, 10)
    assert moved([stranger], [(0, 0, 5)]) == [[0, 5]]


def test_network_is_known_where_it_was_counted() -> None:
    rows = [(0, 0, 1), (0, 1, 1), (10, 0, 1)]
    first, second = given_to([job([0], 0, 20), job([1], 0, 20)], rows, [5, 7, 6])
    assert (first.network, second.network) == (11, 7)
    (never,) = given_to([job([0], 0, 20)], rows)
    assert never.network is None


SPANS = st.tuples(st.integers(0, 60), st.integers(0, 40), st.sets(st.integers(0, 3), min_size=1))
ROWS = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 3)), st.integers(0, 10**9))


@given(st.lists(SPANS, max_size=6), ROWS)
def test_as_looking_at_each_job_node_and_interval_gives(
    spans: list[tuple[int, int, set[int]]], rows: dict[tuple[int, int], int]
) -> None:
    jobs = [job(sorted(nodes), start, start + length) for start, length, nodes in spans]
    expected = [np.zeros(len(each.nodes)) for each in jobs]
    for (when, node), count in rows.items():
        seconds = [
            max(0, min(each.end_s, when * 10 + 10) - max(each.start_s, when * 10))
            if MACHINE.nodes[node] in each.nodes
            else 0
            for each in jobs
        ]
        for each, got, its in zip(jobs, expected, seconds, strict=True):
            if its:
                got[each.nodes.index(MACHINE.nodes[node])] += count * its / sum(seconds)
    found = given_to(jobs, [(when * 10, node, rows[when, node]) for when, node in sorted(rows)])
    for one, other in zip(found, expected, strict=True):
        assert one.bytes == pytest.approx(other, abs=0.51)
