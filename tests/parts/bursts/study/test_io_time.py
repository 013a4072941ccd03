"""Jobs whose phases of I/O share I/O nodes: closed forms, and beside the simulator's network."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.study.io_time import SharedIoNodes, capacity
from tarazu.parts.bursts.study.queue import Applications, Queue
from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.sim.kernel.fluid import Floats
from tarazu.sim.kernel.network import Network

MACHINE = regular(16, 4)
MB = 1e6


def queue(*jobs: tuple[float, int, float, float, int, float]) -> Queue:
    """Each (submitted, nodes, runs, volume, phases, seconds of I/O)."""
    columns = [np.array(column) for column in zip(*jobs, strict=True)]
    submit_s, size, run_s, volume, bursts, io_s = columns
    count = len(jobs)
    flags, numbers = np.ones(count, dtype=np.bool_), np.arange(count)
    one = Applications(size, ~flags, np.zeros(count), numbers)
    return Queue(
        submit_s * 1.0,
        size,
        run_s * 1.0,
        run_s * 9.0,
        numbers,
        numbers,
        flags,
        volume * 1.0,
        volume * 0.0,
        bursts,
        io_s * 1.0,
        one,
        0,
    )


def even(jobs: Queue) -> list[Floats]:
    return [np.full(n, 1 / n) for n in jobs.size.tolist()]


def run(
    jobs: Queue, carries: float, parts: list[Floats] | None = None, machine: Machine = MACHINE
) -> tuple[Replayed, SharedIoNodes]:
    io = SharedIoNodes(machine, jobs, parts or even(jobs), carries)
    return replay(machine, jobs, None, io), io


def test_where_no_io_node_is_asked_for_too_much_jobs_run_as_long_as_the_queue_says() -> None:
    jobs = queue((0, 4, 100, 400 * MB, 5, 20), (3, 6, 50, 100 * MB, 1, 10))
    replayed, io = run(jobs, 20 * MB)
    assert io.io_s == pytest.approx([20, 10])
    assert replayed.end_s - replayed.start_s == pytest.approx([100, 50])


def test_asked_for_twice_what_it_carries_phases_take_twice_as_long() -> None:
    """40 MB/s through one I/O node of 20 MB/s; the pauses stay as long as they are."""
    jobs = queue((0, 4, 100, 800 * MB, 5, 20))
    replayed, io = run(jobs, 20 * MB)
    assert io.io_s == pytest.approx([40])
    assert replayed.end_s == pytest.approx([120])


def test_two_jobs_share_by_what_each_asks_for() -> None:
    """30 and 10 MB/s of 20: half pace, until the shorter one is through."""
    jobs = queue((0, 2, 10, 300 * MB, 1, 10), (0, 2, 4, 40 * MB, 1, 4))
    _, io = run(jobs, 20 * MB)
    # 8 s at half pace: 4 s of the one are done; then 30 of 20: the other 6 s take 9
    assert io.io_s == pytest.approx([17, 8])


def test_the_slowest_io_node_decides_and_one_node_alone_never_overloads_it() -> None:
    jobs = queue((0, 6, 10, 600 * MB, 1, 10))
    parts = [np.array([0.9, 0.02, 0.02, 0.02, 0.02, 0.02])]
    _, io = run(jobs, 30 * MB, parts)  # 54 counts as 30, and 6 more through the same one: 33.6 or 31.2 of 30
    assert 10 < io.io_s[0] <= 11.2 + 1e-6


def test_what_an_io_node_carries_is_so_many_nodes_of_a_data_intensive_job() -> None:
    assert capacity(queue((0, 4, 100, 400 * MB, 5, 20)), 6) == pytest.approx(30 * MB)


def of_network(jobs: Queue, carries: float, parts: list[Floats], replayed: Replayed) -> Floats:
    """I/O time of jobs of one phase each: a flow for each rank over its I/O node, shared by max-min fairness."""
    env = simpy.Environment()
    network = Network(env)
    links = [network.link(carries) for _ in MACHINE.io_nodes]
    took = np.zeros(len(jobs))

    def job(number: int) -> simpy.events.ProcessGenerator:
        yield env.timeout(float(replayed.start_s[number]))
        began = env.now
        flows = []
        for rank, node in enumerate(replayed.nodes[number]):
            volume = float(jobs.volume[number] * parts[number][rank])
            pace = volume / float(jobs.io_s[number])
            if volume:
                flows.append(network.start([links[MACHINE.served_by[node]]], None, volume, pace))
        yield env.all_of(flows)
        took[number] = env.now - began

    network.run(env.all_of([env.process(job(n)) for n in range(len(jobs))]))
    return took


@settings(max_examples=40)
@given(st.data())
def test_one_job_alone_takes_as_long_as_in_the_simulators_network(data: st.DataObject) -> None:
    """Exactly so where its nodes move alike. Else the network lets light ranks pass first, and the heavy ones, alone in
    the end, do not fill the I/O node: it takes a little longer there."""
    size = data.draw(st.integers(1, 16))
    alike = data.draw(st.booleans())
    weights = [1] * size if alike else data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    parts = [np.array(weights) / sum(weights)]
    jobs = queue((0, size, 10, sum(weights) * MB, 1, 10))
    carries = MB * data.draw(st.floats(max(weights) / 10, 4))
    replayed, io = run(jobs, carries, parts)
    theirs = float(of_network(jobs, carries, parts, replayed)[0])
    if alike:
        assert io.io_s[0] == pytest.approx(theirs, rel=1e-6)
    assert io.io_s[0] * (1 - 1e-6) <= theirs <= 1.3 * io.io_s[0]


def test_nodes_of_no_known_io_node_do_not_wait() -> None:
    unknown = dataclasses.replace(MACHINE, served_by=np.full(16, -1, dtype=np.int32))
    _, io = run(queue((0, 4, 100, 800 * MB, 5, 20)), MB, machine=unknown)
    assert io.io_s == pytest.approx([0])
