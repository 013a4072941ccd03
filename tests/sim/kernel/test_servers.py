"""Processor sharing by virtual time gives what the max-min fair network gives for one flow a part."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.sim.kernel.network import Network
from tarazu.sim.kernel.servers import Servers


class Job(NamedTuple):
    start_s: float
    service_s: float
    at: tuple[int, ...]


SERVERS = 4
TIMES = st.one_of(st.integers(0, 20).map(float), st.floats(0, 20))


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    places = st.lists(st.integers(0, SERVERS - 1), min_size=1, max_size=SERVERS, unique=True).map(tuple)
    service = st.one_of(st.integers(1, 8).map(float), st.floats(0.01, 30))
    found = draw(st.lists(st.tuples(TIMES, service, places), min_size=1, max_size=12))
    return sorted(Job(*job) for job in found)


def served(jobs: list[Job]) -> tuple[list[float], list[float]]:
    """When each job ended, and how long each server was busy."""
    servers = Servers(SERVERS)
    ends = [math.nan] * len(jobs)
    ended_s = 0.0
    for number, job in enumerate([*jobs, None]):
        until = math.inf if job is None else job.start_s
        while (ended := servers.serve(until)) is not None:
            assert ended_s - 1e-9 <= servers.now_s <= until, "time does not fall"
            ends[ended] = ended_s = servers.now_s
        if job is not None:
            servers.start(number, job.at, job.service_s, job.start_s)
    return ends, servers.busy(ended_s)


def flowed(jobs: list[Job]) -> list[float]:
    """The same as flows over links of one unit a second."""
    env = simpy.Environment()
    network = Network(env)
    links = [network.link(1.0) for _ in range(SERVERS)]
    ends = [math.nan] * len(jobs)

    def one(number: int, job: Job) -> simpy.events.ProcessGenerator:
        yield env.timeout(job.start_s)
        yield env.all_of([network.start([links[at]], None, job.service_s) for at in job.at])
        ends[number] = env.now

    for number, job in enumerate(jobs):
        env.process(one(number, job))
    env.run()
    return ends


@settings(max_examples=50, deadline=None)
@given(jobs())
def test_ends_are_those_of_the_network(jobs: list[Job]) -> None:
    ends, busy = served(jobs)
    assert ends == pytest.approx(flowed(jobs), rel=1e-9)
    work = [sum(job.service_s for job in jobs if server in job.at) for server in range(SERVERS)]
    assert busy == pytest.approx(work), "a server is busy for as long as it has work"


def test_a_short_job_among_long_ones_leaves_first() -> None:
    ends, busy = served([Job(0.0, 10.0, (0,)), Job(4.0, 1.0, (0, 1))])
    assert ends == [pytest.approx(11.0), pytest.approx(6.0)]
    assert busy == pytest.approx([11.0, 1.0, 0.0, 0.0])
