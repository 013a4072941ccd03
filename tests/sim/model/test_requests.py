"""What requests cost beside their bytes: closed forms, and nothing where nothing is asked for."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.errors import BadInput
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, RequestCosts, ServiceCurve
from tarazu.sim.workloads import ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import KIB, MIB

BARE = ClusterSpec("eight", 8, 2, 100 * 10**9, ServiceCurve(100e6), ServiceCurve(200e6), nodes=4)


def costing(**costs: float) -> ClusterSpec:
    return msgspec.structs.replace(BARE, costs=RequestCosts(**costs))


def seconds(spec: ClusterSpec, work: Workload, stripes: int) -> float:
    return Simulation(spec, "round-robin").run([Job(work, f"-c {stripes} -S 1M")]).end_s


def workload(ranks: int = 4, ranks_per_node: int = 1, **more: object) -> Workload:
    """Each rank writes 64 MiB in calls of 64 KiB."""
    options = {"block_bytes": 64 * MIB, "transfer_bytes": 64 * KIB, "read": False, **more}
    return ior.workload(ranks=ranks, ranks_per_node=ranks_per_node, **options)  # type: ignore[arg-type]


STRIDED = {"block_bytes": 64 * KIB, "segments": 1024, "operations": 1, "shared": True}
CALLS = 1024
ALL = 4 * 64 * MIB


@pytest.mark.parametrize(
    ("costs", "more", "stripes", "expected_s"),
    [
        ({"call_s": 0.01}, {}, 8, CALLS * 0.01),
        ({"disk_s": 0.1}, {}, 8, ALL / 8 / 100e6 + ALL / 8 / (4 * MIB) * 0.1),
        ({"disk_s": 0.1, "rpc_bytes": MIB}, {}, 8, ALL / 8 / 100e6 + ALL / 8 / MIB * 0.1),
        ({"disk_s": 0.1}, STRIDED, 1, ALL / 100e6 + 4 * CALLS * 0.1),
        ({"lock_s": 3.0}, {"shared": True}, 1, 4 * 3.0),
        ({"lock_s": 3.0}, {"shared": True}, 8, 4 * 3.0),
        ({"lock_s": 0.1}, STRIDED, 1, 4 * CALLS * 0.1),
        ({"lock_s": 0.1}, STRIDED, 8, 4 * CALLS * 0.1 / 8),
        ({"object_s": 1.0}, {}, 8, 4 * 8 * 1.0 + 64 * MIB / 8 / 100e6),
    ],
    ids=["call", "disk", "small-rpcs", "gaps", "lock", "locks-of-8", "lock-each", "locks-each", "objects"],
)
def test_each_cost_as_its_closed_form_says(
    costs: dict[str, float], more: dict[str, object], stripes: int, expected_s: float
) -> None:
    """Where the cost dominates; of creates the last file is written alone."""
    assert seconds(costing(**costs), workload(**more), stripes) == pytest.approx(expected_s, rel=0.02)


def test_a_router_pays_for_each_rpc() -> None:
    spec = msgspec.structs.replace(costing(router_s=0.1), lnet_routers=1, lnet_router_bytes_per_s=1e9)
    assert seconds(spec, workload(), 8) == pytest.approx(ALL / 1e9 + ALL / (4 * MIB) * 0.1, rel=1e-6)


@pytest.mark.parametrize(
    "work",
    [
        workload(ranks_per_node=4, shared=True),
        workload(shared=True, write=False, read=True),
        workload(),
    ],
    ids=["one-node", "readers", "own-files"],
)
def test_locks_pass_between_nodes_that_write_the_same_file_only(work: Workload) -> None:
    assert seconds(costing(lock_s=100.0), work, 1) == seconds(BARE, work, 1)


@pytest.mark.parametrize("more", [{}, STRIDED, {"shared": True}], ids=["own-files", "strided", "shared"])
def test_costs_of_nothing_change_nothing(more: dict[str, object]) -> None:
    work = workload(**more)
    assert seconds(costing(), work, 4) == pytest.approx(seconds(BARE, work, 4), rel=1e-12)


@pytest.mark.parametrize("costs", [{"call_s": -1.0}, {"lock_s": float("inf")}, {"rpc_bytes": 0}])
def test_costs_that_cannot_be_are_refused(costs: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"cluster eight: expected costs.{next(iter(costs))}"):
        Simulation(costing(**costs))
