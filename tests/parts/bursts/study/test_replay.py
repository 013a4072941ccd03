"""First in first out with EASY backfill, on nodes that Slurm would choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.sim.kernel.fluid import Floats, Ints

MACHINE = regular(16, 4)


@dataclass(frozen=True, eq=False)
class Columns:
    submit_s: Floats
    size: Ints
    run_s: Floats
    limit_s: Floats


def queue(*jobs: Sequence[float]) -> Columns:
    """Each (submitted, nodes, runs, limit)."""
    submit, size, run, limit = zip(*jobs, strict=True)
    return Columns(np.array(submit, float), np.array(size), np.array(run, float), np.array(limit, float))


def test_first_in_first_out_where_nothing_can_be_filled_in() -> None:
    found = replay(MACHINE, queue((0, 10, 5, 5), (0, 10, 5, 5), (0, 10, 5, 5)))
    assert found.start_s.tolist() == [0, 5, 10]
    assert found.end_s.tolist() == [5, 10, 15]


def test_a_job_behind_the_head_starts_when_it_ends_before_or_leaves_it_its_nodes() -> None:
    found = replay(
        MACHINE,
        queue(
            (0, 10, 8, 10),
            (1, 12, 5, 5),  # the head: at 10 at the latest, then 4 nodes are left over
            (2, 3, 20, 20),  # too long, but of the 4 left over
            (2, 2, 20, 20),  # too long, and only 1 is left over
            (2, 2, 5, 8),  # ends in time
        ),
    )
    assert found.start_s.tolist() == [0, 8, 2, 13, 2]


def test_backfill_goes_by_limits_not_by_how_long_jobs_will_run() -> None:
    """The head may start at 10; what its user let run for 20 does not begin before it, though it would be done by 7."""
    found = replay(MACHINE, queue((0, 10, 10, 10), (1, 16, 5, 5), (2, 2, 5, 20), (2, 2, 5, 8)))
    assert found.start_s.tolist() == [0, 10, 15, 2]
    # and where running jobs end sooner than their users said, the head's turn is not known to be so soon
    found = replay(MACHINE, queue((0, 10, 3, 30), (1, 16, 5, 5), (2, 2, 20, 20)))
    assert found.start_s.tolist() == [0, 22, 2]


JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 16), st.integers(1, 20), st.integers(0, 10)),
    min_size=1,
    max_size=20,
)


def at_once(jobs: Columns, found: Replayed) -> None:
    for time in found.start_s:
        running = np.flatnonzero((found.start_s <= time) & (time < found.end_s))
        nodes = np.concatenate([found.nodes[j] for j in running])
        assert len(set(nodes.tolist())) == len(nodes)


@settings(max_examples=50)
@given(JOBS)
def test_each_job_once_its_nodes_its_own_and_heads_are_not_delayed(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    jobs = queue(*sorted((s, n, r, r + more) for s, n, r, more in drawn))
    found = replay(MACHINE, jobs)
    assert (found.start_s >= jobs.submit_s).all()
    assert found.end_s == pytest.approx(found.start_s + jobs.run_s)
    assert [len(n) for n in found.nodes] == jobs.size.tolist()
    at_once(jobs, found)
    # as if all limits were true: no job is delayed by what is filled in once it is the head
    exact = Columns(jobs.submit_s, jobs.size, jobs.run_s, jobs.run_s)
    starts = replay(MACHINE, exact).start_s
    for job, promised in enumerate(as_heads(exact, starts)):
        assert starts[job] <= promised


def as_heads(jobs: Columns, starts: Floats) -> list[float]:
    """When each job could have started as all that stood before it had, without those behind it that started then."""
    ends, found = starts + jobs.run_s, []
    for job in range(len(starts)):
        head = max([float(jobs.submit_s[job]), *starts[:job].tolist()])
        others = np.flatnonzero((ends > head) & ((starts < head) | (np.arange(len(starts)) < job)))
        for time in [head, *sorted(ends[others].tolist())]:
            if jobs.size[others][ends[others] > time].sum() + jobs.size[job] <= len(MACHINE.nodes):
                found.append(time)
                break
    return found
