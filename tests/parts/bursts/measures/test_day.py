"""A small day from traffic and jobs to what is said of it."""

from __future__ import annotations

import numpy as np

from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.measures.day import Period, Share, analyse, with_nodes
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic

MACHINE = regular(16, 4)
LIMITS = Thresholds(intensive=50)


def job(number: int, nodes: range, start_s: float, end_s: float, name: str = "model") -> Job:
    return Job(str(number), "ann", name, tuple(MACHINE.nodes[n] for n in nodes), start_s, end_s)


def day(jobs: list[Job], moved: np.ndarray, **options: object) -> Period:
    """moved: (intervals, nodes) bytes."""
    time, node = np.nonzero(moved)
    values = moved[time, node].astype(np.int64)
    chunk = Traffic(MACHINE.nodes, 10.0, time * 10, node.astype(np.int32), values * 0, values)
    return analyse([chunk], jobs, MACHINE, (0, len(moved) * 10), limits=LIMITS, **options)  # type: ignore[arg-type]


def test_from_traffic_and_jobs_to_applications() -> None:
    moved = np.zeros((70, 16))
    jobs = []
    for number in range(6):
        jobs.append(job(number, range(2 * number, 2 * number + 2), number * 100, number * 100 + 50))
        moved[number * 10 + 2, 2 * number] = 75
        moved[number * 10 + 3, 2 * number + 1] = 25
    moved[65, 15] = 11  # of no job
    found = day(jobs, moved)
    assert found.job_statistics.intensive == Share(6, 6)
    assert found.job_statistics.even == Share(0, 6)
    assert found.job_statistics.concentrated == Share(6, 6)
    (application,) = found.applications.values()
    assert set(found.applications) == {ApplicationKey("ann", "model", 2)}
    assert (application.shares, application.divergent) == ((0.75, 0.25), False)
    assert found.application_statistics.divergent == Share(0, 1)
    assert found.unowned_bytes == 11
    assert found.shares.mean(found.shares.nodes) == 1


def test_jobs_beyond_the_period_are_only_partly_seen() -> None:
    moved = np.zeros((10, 16))
    moved[:, :3] = 10
    jobs = [
        job(1, range(1), -5, 50),
        job(2, range(1, 2), 60, 500),
        job(3, range(2, 3), 0, 100),
        job(4, range(4), 100, 120),
    ]
    found = day(jobs, moved)
    assert [m.job.id for m in found.moved] == ["3"]
    assert (found.partly, found.partly_bytes) == (2, 50 + 40)
    assert found.unowned_bytes == 50 + 60


def test_jobs_that_ran_while_nobody_counted_are_only_partly_seen() -> None:
    moved = np.zeros((10, 16))
    moved[:3, :2] = 10
    found = day([job(1, range(1), 0, 30), job(2, range(1, 2), 0, 60)], moved, gaps=[(30, 55)])
    assert [m.job.id for m in found.moved] == ["1"]
    assert (found.partly, found.partly_bytes, found.unowned_bytes) == (1, 30, 0)


def test_nodes_of_jobs_that_the_machine_does_not_know_are_taken_up() -> None:
    strange = Job("1", "ann", "model", ("n03", "new1"), 0, 50)
    machine = with_nodes(MACHINE, [strange])
    assert machine.nodes[-1] == "new1"
    assert (machine.cabinet[-1], machine.served_by[-1]) == (-1, -1)
    assert with_nodes(MACHINE, []) is MACHINE
    moved = np.zeros((5, 16))
    moved[0, 3] = 1
    found = day([strange], moved, mappings={"all on one": np.zeros(16, np.int32)})
    assert found.characters[0].cabinets is None
    assert found.shares.mapped["all on one"].busiest.tolist() == [1]
