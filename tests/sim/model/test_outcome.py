"""What an outcome says of queues and servers, and which clusters, jobs and failures are refused with one line."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from tarazu.errors import BadInput
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Failure, Job, ServiceCurve
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload
from tarazu.units import MIB

RATE = 100e6
SPEC = ClusterSpec(
    "four", 4, 2, 100 * 10**9, ServiceCurve(RATE), ServiceCurve(RATE), cpu_bytes_per_s=4 * RATE, nodes=8
)
SIZE = 100 * MIB


def writers(starts: list[float], osts: list[int]) -> Workload:
    """A file of one stripe each, on these OSTs."""
    rows = [(rank, rank, OperationKind.WRITE, at, 0.0, 0, SIZE, SIZE) for rank, at in enumerate(starts)]
    files = tuple(File(f"/{rank}", SIZE, osts=((ost,),)) for rank, ost in enumerate(osts))
    return Workload("w", len(osts), 1, files, np.array(rows, OPERATION))


def test_the_queue_of_an_ost_is_the_operations_that_wait_for_another() -> None:
    one_s = SIZE / RATE
    simulation = Simulation(SPEC)
    for _ in range(2):
        # Three at once on OST 0; on OST 1 the second comes when half of the first is done.
        outcome = simulation.run([Job(writers([0, 0, 0, 0, one_s / 2], [0, 0, 0, 1, 1]), "-c 1")])
        assert [o.queue_max for o in outcome.osts] == [3, 2, 0, 0]
        assert [o.busy_s for o in outcome.osts] == pytest.approx([3 * one_s, 2 * one_s, 0, 0], rel=1e-9)
        # Two share for as long as half of the first takes twice.
        assert [o.queue_wait_s for o in outcome.osts] == pytest.approx([6 * one_s, one_s, 0, 0], rel=1e-9)


def test_cpus_of_servers_are_counted_by_their_bytes() -> None:
    outcome = Simulation(SPEC).run([Job(writers([0] * 4, [0, 1, 1, 3]), "-c 1")])
    assert [o.written_bytes for o in outcome.osses] == [3 * SIZE, SIZE]
    assert [o.cpu_s for o in outcome.osses] == pytest.approx([3 * SIZE / 4 / RATE, SIZE / 4 / RATE])


def test_a_queue_is_in_the_reports_of_its_server() -> None:
    simulation = Simulation(SPEC, statistics_s=1000.0)
    simulation.run([Job(writers([0] * 5, [0, 0, 0, 2, 3]), "-c 1")])
    publisher = simulation.cluster.publisher
    assert publisher is not None
    first, second = publisher.reports(simulation.now)
    # Each I/O of 1 MiB waits for those of the two others.
    assert first.queue_wait_s == pytest.approx(2 * MIB / RATE, rel=1e-9)
    assert second.queue_wait_s == 0
    assert all(report.queue_wait_s == 0 for report in publisher.reports(simulation.now))


@pytest.mark.parametrize(
    "changes",
    [
        {"write": ServiceCurve(RATE, interference=math.nan)},
        {"create_s": math.nan},
        {"create_s": math.inf},
        {"speeds": (0.0,)},
        {"resolution_s": math.nan},
        {"failures": [Failure(0, 0.0, math.inf)]},
    ],
    ids=str,
)
def test_clusters_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    of_simulation = {name: changes.pop(name) for name in ("resolution_s", "failures") if name in changes}
    with pytest.raises(BadInput):
        Simulation(msgspec.structs.replace(SPEC, **changes), **of_simulation)


@pytest.mark.parametrize(
    ("kind", "size", "start_s"), [(9, 1, 0.0), (-1, 1, 0.0), (2, -1, 0.0), (2, 1, math.nan), (2, 1, math.inf)]
)
def test_jobs_that_cannot_be_are_refused(kind: int, size: int, start_s: float) -> None:
    operations = np.array([(0, 0, kind, 0.0, 0.0, 0, 1, 1)], OPERATION)
    work = Workload("w", 1, 1, (File("/f", size),), operations)
    with pytest.raises(BadInput):
        Simulation(SPEC).run([Job(work, start_s=start_s)])


@pytest.mark.parametrize("policy", ["lsa", "tarazu"])
def test_no_file_goes_to_an_ost_that_never_worked(policy: str) -> None:
    spec = msgspec.structs.replace(SPEC, speeds=(0.0, 1.0, 1.0, 1.0))
    work = writers([0.0] * 8, [1] * 8)
    free = msgspec.structs.replace(
        work, files=tuple(msgspec.structs.replace(f, osts=None) for f in work.files)
    )
    outcome = Simulation(spec, policy).run([Job(free, "-c 1")])
    assert outcome.osts[0].placed_bytes == 0
    assert sum(o.placed_bytes for o in outcome.osts) == 8 * SIZE


def test_more_bytes_than_can_be_counted_are_refused() -> None:
    operations = np.array([(0, 0, OperationKind.WRITE, 0.0, 0.0, 0, 2**61, 2**61)] * 4, OPERATION)
    with pytest.raises(BadInput, match="bytes in all"):
        Simulation(SPEC).run([Job(Workload("w", 1, 1, (File("/f", 2**61),), operations))])
