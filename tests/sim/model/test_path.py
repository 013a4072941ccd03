"""The way of bytes from node to OST: closed forms, conservation, failures."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tarazu.errors import BadInput, InsufficientResources
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.model.simulation import Simulation, StandsStill
from tarazu.sim.model.spec import ClusterSpec, Failure, Job, ServiceCurve
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload
from tarazu.units import GIB, MIB

SPEC = ClusterSpec("eight", 8, 2, 100 * 10**9, ServiceCurve(100e6), ServiceCurve(200e6))


def per_process(
    ranks: int,
    size: int,
    *kinds: OperationKind,
    ranks_per_node: int = 1,
    exists: bool = False,
    name: str = "fpp",
) -> Workload:
    """A file per rank, each rank doing `kinds` with all of it."""
    operations = [
        (rank, rank, kind, 0.0, 0.0, 0, size * (kind in (OperationKind.WRITE, OperationKind.READ)), size)
        for rank in range(ranks)
        for kind in kinds
    ]
    files = tuple(File(f"/{name}/{rank}", size, exists=exists) for rank in range(ranks))
    return Workload(name, ranks, ranks_per_node, files, np.array(operations, OPERATION))


WRITERS = (OperationKind.CREATE, OperationKind.WRITE, OperationKind.CLOSE)


def seconds(spec: ClusterSpec, job: Job, policy: str = "round-robin") -> float:
    return Simulation(spec, policy).run([job]).end_s


def with_(**changes: object) -> ClusterSpec:
    return msgspec.structs.replace(SPEC, **changes)


@pytest.mark.parametrize(
    ("spec", "expected_s"),
    [
        (SPEC, 4 * GIB / 8 / 100e6),
        (with_(nic_bytes_per_s=50e6, nodes=4), GIB / 50e6),
        (with_(io_routers=2, io_router_bytes_per_s=80e6, nodes=4), 2 * GIB / 80e6),
        (with_(lnet_routers=2, lnet_router_bytes_per_s=90e6), 2 * GIB / 90e6),
        (with_(oss_link_bytes_per_s=40e6), GIB / 40e6),
        (with_(write=ServiceCurve(100e6, stream_bytes_per_s=10e6)), GIB / 8 / 10e6),
        (with_(write=ServiceCurve(100e6, interference=0.5)), 4 * GIB / 8 / (100e6 / 2.5)),
        (with_(create_s=2.0, mds_threads=2), 2.0 + 4 * GIB / 8 / 100e6),
    ],
    ids=["ost", "nic", "io-router", "lnet-router", "oss-link", "stream", "interference", "mds"],
)
def test_each_hop_holds_writes_back_as_its_closed_form_says(spec: ClusterSpec, expected_s: float) -> None:
    job = Job(per_process(4, GIB, *WRITERS), "-c 8 -S 1M")
    assert seconds(spec, job) == pytest.approx(expected_s, rel=1e-9)


def test_neighbours_share_an_io_router_or_take_them_in_turn() -> None:
    two_nodes = Job(per_process(2, GIB, *WRITERS), "-c 8 -S 1M")
    block = with_(io_routers=2, io_router_bytes_per_s=20e6, nodes=4)
    assert seconds(block, two_nodes) == pytest.approx(2 * GIB / 20e6)
    assert seconds(msgspec.structs.replace(block, io_router_of="cyclic"), two_nodes) == pytest.approx(
        GIB / 20e6
    )


def test_no_number_of_routers_means_one_for_each_server() -> None:
    spec = with_(lnet_routers=0, lnet_router_bytes_per_s=40e6)
    assert seconds(spec, Job(per_process(4, GIB, *WRITERS), "-c 8 -S 1M")) == pytest.approx(
        4 * GIB / spec.osses / 40e6
    )


def test_links_are_full_duplex_and_a_disk_is_shared_by_both_directions() -> None:
    write = Job(per_process(1, GIB, *WRITERS, name="w"), "-c 8 -S 1M")
    read = Job(
        per_process(1, GIB, OperationKind.OPEN, OperationKind.READ, exists=True, name="r"), "-c 8 -S 1M"
    )
    wide = with_(oss_link_bytes_per_s=10e6, nic_bytes_per_s=40e6, nodes=2)
    assert Simulation(wide).run([write, read]).end_s == pytest.approx(GIB / 40e6, rel=1e-9)
    # Both at one rate r until the read ends: r (1/100 + 1/200) = 1 on each disk for an eighth of it.
    outcome = Simulation(SPEC).run([write, read])
    together_s = GIB / 8 * (1 / 100e6 + 1 / 200e6)
    assert outcome.end_s == pytest.approx(together_s, rel=1e-9)
    assert outcome.read_bytes_per_s == pytest.approx(GIB / together_s, rel=1e-9)


def test_n_ranks_on_one_ost_have_an_nth_of_it_each() -> None:
    outcome = Simulation(with_(osts=1, osts_per_oss=1)).run([Job(per_process(5, GIB, *WRITERS), "-c 1")])
    assert outcome.end_s == pytest.approx(5 * GIB / 100e6, rel=1e-9)
    assert outcome.write_bytes_per_s == pytest.approx(100e6, rel=1e-9)
    assert outcome.osts[0].busy_s == pytest.approx(outcome.end_s, rel=1e-9)


def test_what_is_written_is_what_each_hop_carries_and_what_space_shrinks_by() -> None:
    spec = with_(nodes=3, nic_bytes_per_s=1e9, io_routers=2, io_router_bytes_per_s=1e9, used=(0.1, 0.2))
    spec = msgspec.structs.replace(
        spec, lnet_routers=3, lnet_router_bytes_per_s=1e9, oss_link_bytes_per_s=1e9
    )
    for rule in ("plain", "pfl-1", "pfl-2", "auto", "contiguous"):
        simulation = Simulation(spec)
        outcome = simulation.run([Job(per_process(3, GIB + 12345, *WRITERS), rule)])
        written = 3 * (GIB + 12345)
        carried = dict(zip(simulation.cluster.network.names, simulation.cluster.network.carried().tolist()))
        for hop in ("NIC", "I/O router", "LNet router", "link of OSS"):
            through = sum(
                v for name, v in carried.items() if name.startswith(hop) and name.endswith("writes")
            )
            assert through == pytest.approx(written, rel=1e-12), hop
            assert not sum(
                v for name, v in carried.items() if name.startswith(hop) and name.endswith("reads")
            )
        assert sum(o.written_bytes for o in outcome.osts) == written
        assert sum(o.placed_bytes for o in outcome.osts) == written
        filled = sum(o.fill for o in outcome.osts) * spec.ost_bytes - 8 * 0.15 * spec.ost_bytes
        assert filled == pytest.approx(written, abs=8)
        assert outcome.jobs[0].written_bytes == written


def test_a_slow_ost_holds_back_the_whole_file() -> None:
    slow = with_(speeds=(1.0,) * 7 + (0.1,))
    assert seconds(slow, Job(per_process(1, GIB, *WRITERS), "-c 8 -S 1M")) == pytest.approx(GIB / 8 / 10e6)


def test_a_disk_serves_an_object_of_a_wide_file_as_well_as_a_whole_narrow_one() -> None:
    def writer(name: str, osts: list[tuple[int, ...]]) -> Workload:
        layouts = [Layout((Component(0, EOF, MIB, len(of)),)) for of in osts]
        files = tuple(
            File(f"/{name}{n}", GIB, layout=layout, osts=(of,))
            for n, (layout, of) in enumerate(zip(layouts, osts))
        )
        operations = [(n, n, OperationKind.WRITE, 0.0, 0.0, 0, GIB, GIB) for n in range(len(osts))]
        return Workload(name, len(osts), 1, files, np.array(operations, OPERATION))

    narrow = writer("narrow", [(ost,) for ost in range(8)])
    outcome = Simulation(SPEC).run([Job(writer("wide", [tuple(range(8))])), Job(narrow)])
    # Half of each disk for the wide file, until it has its eighth there.
    expected_s = [2 * GIB / 8 / 100e6, (GIB + GIB / 8) / 100e6]
    assert [job.end_s for job in outcome.jobs] == pytest.approx(expected_s, rel=1e-9)


def test_an_ost_that_becomes_slow_and_recovers() -> None:
    failures = [Failure(0, 1.0, 0.5, 3.0)]
    outcome = Simulation(with_(osts=1, osts_per_oss=1), failures=failures).run(
        [Job(per_process(1, 400 * 10**6, *WRITERS), "-c 1")]
    )
    assert outcome.end_s == pytest.approx(5.0, rel=1e-9)


def test_writes_wait_for_a_lost_ost_and_new_files_avoid_it() -> None:
    spec = with_(osts=2, osts_per_oss=1)
    job = Job(per_process(2, 500 * 10**6, *WRITERS), "-c 1")
    simulation = Simulation(spec, failures=[Failure(0, 1.0, 0.0, 101.0)])
    assert simulation.run([job]).end_s == pytest.approx(105.0, rel=1e-9)
    for policy in ("lsa", "tarazu", "random"):
        simulation = Simulation(spec, policy, failures=[Failure(0, 0.5, 0.0)])
        later = msgspec.structs.replace(job, start_s=10.0)
        assert simulation.run([later]).end_s == pytest.approx(20.0, rel=1e-9), policy


def test_a_simulation_in_which_nothing_goes_on_says_so() -> None:
    simulation = Simulation(SPEC, failures=[Failure(3, 1.0, 0.0)])
    with pytest.raises(StandsStill, match="nothing can continue: job fpp waits for OST 3, which is lost"):
        simulation.run([Job(per_process(1, GIB, *WRITERS), "-c 8 -S 1M")])


def test_a_write_to_a_full_ost_fails_as_lustre_lets_it() -> None:
    with pytest.raises(InsufficientResources, match=r"job fpp: no space left on OST \d at .* \(ENOSPC\)"):
        Simulation(with_(ost_bytes=GIB)).run([Job(per_process(2, 5 * GIB, *WRITERS), "-c 8 -S 1M")])


def test_reads_go_where_the_data_was_written() -> None:
    simulation = Simulation(SPEC)
    first = simulation.run([Job(per_process(3, 512 * MIB, *WRITERS), "-c 1")])
    again = per_process(
        3, 512 * MIB, OperationKind.OPEN, OperationKind.READ, OperationKind.CLOSE, exists=True
    )
    second = simulation.run([Job(again, "-c 1")])
    assert [o.read_bytes for o in second.osts] == [o.written_bytes for o in first.osts]
    assert not any(o.written_bytes or o.placed_bytes for o in second.osts)


def test_a_file_made_anew_frees_the_old_ones_space() -> None:
    simulation = Simulation(SPEC)
    fills = [
        sum(o.fill for o in simulation.run([Job(per_process(3, GIB, *WRITERS), "pfl-1")]).osts)
        for _ in range(3)
    ]
    assert fills == pytest.approx([3 * GIB / SPEC.ost_bytes] * 3, rel=1e-6)


def test_writing_in_place_takes_no_more_space() -> None:
    twice = (OperationKind.CREATE, OperationKind.WRITE, OperationKind.WRITE, OperationKind.CLOSE)
    outcome = Simulation(SPEC).run([Job(per_process(2, GIB, *twice), "plain")])
    assert sum(o.written_bytes for o in outcome.osts) == 4 * GIB
    assert sum(o.placed_bytes for o in outcome.osts) == pytest.approx(2 * GIB, abs=64)
    assert sum(o.fill for o in outcome.osts) * SPEC.ost_bytes == pytest.approx(2 * GIB, abs=64)


def test_logged_osts_are_used_and_checked() -> None:
    work = per_process(1, GIB, *WRITERS)
    logged = msgspec.structs.replace(work, files=(File("/a", GIB, osts=((5,),)),))
    outcome = Simulation(SPEC, "random").run([Job(logged, "-c 1")])
    assert [o.index for o in outcome.osts if o.placed_bytes] == [5]
    assert not outcome.jobs[0].left_to_lustre
    wrong = msgspec.structs.replace(work, files=(File("/a", GIB, osts=((8,),)),))
    with pytest.raises(BadInput, match="file /a: expected OSTs 0 to 7 of the cluster, found 8"):
        Simulation(SPEC).run([Job(wrong, "-c 1")])


def test_ranks_meet_at_barriers_and_keep_their_own_times() -> None:
    rows = [
        (0, 0, OperationKind.CREATE, 0, 0, 0, 0, 0),
        (0, 0, OperationKind.WRITE, 0, 0, 0, 10**8, 10**8),
        (0, -1, OperationKind.BARRIER, 0, 0, 0, 0, 0),
        (0, 0, OperationKind.WRITE, 2.0, 0, 10**8, 10**8, 10**8),
        (1, -1, OperationKind.BARRIER, 0, 0, 0, 0, 0),
        (1, 1, OperationKind.WRITE, 0, 7.0, 0, 10**8, 10**8),
    ]
    work = Workload("b", 2, 1, (File("/0", 2 * 10**8), File("/1", 10**8)), np.array(rows, OPERATION))
    outcome = Simulation(SPEC).run([Job(work, "-c 1", start_s=5.0)])
    job = outcome.jobs[0]
    assert (job.start_s, job.end_s) == (5.0, 13.0)  # one second each: at 5, at 6 + 2, at 5 + 7
    assert job.write_s == pytest.approx(3.0)
    assert job.write_bytes_per_s == pytest.approx(100e6)
