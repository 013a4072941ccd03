from __future__ import annotations

import time
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.sim.workloads import hacc, ior, stand_ins
from tarazu.sim.workloads.operations import even_parts
from tarazu.sim.workloads.workload import OperationKind, Workload
from tarazu.units import MIB

GB = 10**9


def moves(work: Workload, kind: OperationKind) -> Any:
    return work.operations[work.operations["kind"] == kind]


def once(work: Workload, kind: OperationKind) -> bool:
    """Each byte of each file is moved once; the operations are contiguous."""
    of = moves(work, kind)
    of = of[np.lexsort((of["offset"], of["file"]))]
    ends = of["offset"] + of["bytes"]
    first = np.diff(of["file"], prepend=-1) > 0
    last = np.append(first[1:], True)
    chained = (of["offset"][1:] == np.where(first[1:], 0, ends[:-1])).all()
    return bool(chained and ends[last].tolist() == [f.size_bytes for f in work.files] and not of["offset"][0])


def test_file_per_process() -> None:
    work = ior.workload(ranks=12, block_bytes=4 * MIB, segments=3, ranks_per_node=5)
    assert (len(work.files), work.ranks, work.nodes) == (12, 12, 3)
    assert {f.size_bytes for f in work.files} == {12 * MIB} and not any(f.exists for f in work.files)
    for kind in (OperationKind.WRITE, OperationKind.READ):
        assert work.moved_bytes(kind) == 12 * 12 * MIB
        assert (moves(work, kind)["file"] == moves(work, kind)["rank"]).all()
    assert (work.operations["kind"] == OperationKind.CREATE).sum() == 12


@pytest.mark.parametrize("interface", ["POSIX", "MPIIO"])
@pytest.mark.parametrize("segments", [1, 3, 100])
def test_single_shared_file(interface: Any, segments: int) -> None:
    work = ior.workload(
        ranks=4, block_bytes=100, transfer_bytes=50, segments=segments, shared=True, interface=interface
    )
    assert [f.size_bytes for f in work.files] == [400 * segments]
    assert work.moved_bytes(OperationKind.WRITE) == work.moved_bytes(OperationKind.READ) == 400 * segments
    wrote = moves(work, OperationKind.WRITE)
    if segments <= ior.REQUESTS:
        assert once(work, OperationKind.WRITE) and once(work, OperationKind.READ)
    else:
        assert len(wrote) == 4 * ior.REQUESTS
    for rank in range(4):
        mine = wrote[wrote["rank"] == rank]
        assert (
            mine["offset"][0] == rank * 100 and mine["offset"][-1] + mine["span_bytes"][-1] <= 400 * segments
        )
    creates = work.operations[work.operations["kind"] == OperationKind.CREATE]
    assert creates["rank"].tolist() == [0]
    before = work.operations[work.operations["rank"] == 1]["kind"].tolist()
    assert (before[0] == OperationKind.BARRIER) == (interface == "MPIIO"), (
        "MPI-IO: rank 0 creates before the others open"
    )


def test_collective_io_is_that_of_the_aggregators() -> None:
    work = ior.workload(
        ranks=16, block_bytes=MIB, interface="MPIIO", collective=True, shared=True, ranks_per_node=4
    )
    assert set(moves(work, OperationKind.WRITE)["rank"].tolist()) == {0, 4, 8, 12}
    assert once(work, OperationKind.WRITE) and (moves(work, OperationKind.WRITE)["bytes"] == 4 * MIB).all()
    two = ior.workload(
        ranks=16, block_bytes=MIB, interface="MPIIO", collective=True, shared=True, aggregators=2
    )
    assert set(moves(two, OperationKind.WRITE)["rank"].tolist()) == {0, 8}
    opens = two.operations[two.operations["kind"] <= OperationKind.OPEN]
    assert set(opens["rank"].tolist()) == set(range(16)), "all ranks take part"


@pytest.mark.parametrize("shared", [False, True])
def test_reordered_reads_are_of_the_next_nodes_data(shared: bool) -> None:
    work = ior.workload(ranks=8, block_bytes=MIB, shared=shared, reorder=True, ranks_per_node=2)
    for rank in range(8):
        (wrote,), (got,) = (
            moves(work, k)[moves(work, k)["rank"] == rank] for k in (OperationKind.WRITE, OperationKind.READ)
        )
        other = (rank + 2) % 8
        assert (got["offset"], got["file"]) == ((other * MIB, 0) if shared else (0, other))
        assert (wrote["offset"], wrote["file"]) == ((rank * MIB, 0) if shared else (0, rank))


def test_repetitions() -> None:
    new = ior.workload(ranks=2, block_bytes=MIB, repetitions=3, read=False, interval_s=2.0)
    assert len(new.files) == 6 and (new.operations["kind"] == OperationKind.CREATE).sum() == 6
    assert new.operations["delay_s"].tolist().count(2.0) == 4
    same = ior.workload(ranks=2, block_bytes=MIB, repetitions=3, read=False, new_files=False)
    assert len(same.files) == 2 and (same.operations["kind"] == OperationKind.CREATE).sum() == 2
    assert same.moved_bytes(OperationKind.WRITE) == new.moved_bytes(OperationKind.WRITE) == 6 * MIB
    only = ior.workload(ranks=2, block_bytes=MIB, write=False)
    assert all(f.exists for f in only.files) and not (only.operations["kind"] == OperationKind.CREATE).any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ranks": 0}, r"ior\.ranks: expected 1 or more, found 0"),
        ({"transfer_bytes": 3}, r"ior\.block_bytes: expected a multiple of transfer_bytes \(3\)"),
        ({"collective": True}, r"ior\.collective: expected interface MPIIO"),
        ({"interface": "HDF5"}, r"ior\.interface: expected POSIX or MPIIO, found 'HDF5'"),
        ({"write": False, "read": False}, r"expected one of them"),
        ({"interval_s": -1.0}, r"ior\.interval_s: expected 0 or more"),
    ],
)
def test_ior_refuses(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        ior.workload(**{"ranks": 4, "block_bytes": MIB, **given})


def test_hacc_io_has_the_sizes_of_the_benchmark() -> None:
    """Bytes as logged by Darshan: eight ranks, 100,000 particles each."""
    own = hacc.workload(ranks=8, particles=100_000)
    one = hacc.workload(ranks=8, particles=100_000, shared=True)
    for work, size in ((own, 231_726_592), (one, 55_565_824)):
        assert work.moved_bytes(OperationKind.WRITE) == work.moved_bytes(OperationKind.READ) == size
        assert sum(f.size_bytes for f in work.files) == size
    small = hacc.workload(ranks=3, particles=5, shared=True)
    assert once(small, OperationKind.WRITE) and once(small, OperationKind.READ)
    first, second = (small.operations[small.operations["rank"] == r]["kind"].tolist() for r in (0, 1))
    assert first[:2] == [OperationKind.CREATE, OperationKind.BARRIER] and second[:2] == [
        OperationKind.BARRIER,
        OperationKind.OPEN,
    ]
    assert len(hacc.workload(ranks=2, particles=1, repetitions=3, read=False).files) == 6


PAPER = {
    "genomicPrediction": (128, 110_600_000_000, 80_200_000_000),
    "E3SM": (256, 100_800_000_000, 150_300_000_000),
    "cosmoFlow": (64, 250_600_000_000, 52_400_000_000),
}
"""Table 7: nodes, total read, total write in GB."""


@pytest.mark.parametrize("steps", [10, 7])
@pytest.mark.parametrize("name", PAPER)
def test_stand_ins_meet_table_7(name: Any, steps: int) -> None:
    work = stand_ins.workload(name=name, steps=steps, seed=3)
    nodes, got, wrote = PAPER[name]
    assert (work.nodes, work.ranks) == (nodes, 6 * nodes)
    assert (work.moved_bytes(OperationKind.READ), work.moved_bytes(OperationKind.WRITE)) == (got, wrote)
    new = [f for f in work.files if not f.exists]
    assert len(new) == work.ranks * steps and sum(f.size_bytes for f in new) == wrote
    writers = moves(work, OperationKind.WRITE)
    assert len(np.unique(writers["file"])) == len(writers), "one file per rank and step"
    assert np.bincount(writers["rank"]).tolist() == [steps] * work.ranks
    assert f"{nodes} nodes, {got / GB:g} GB read, {wrote / GB:g} GB written" in work.stand_in
    sizes = np.array([f.size_bytes for f in new])
    assert sizes.std() / sizes.mean() == pytest.approx(0.2, rel=0.15)
    reads = moves(work, OperationKind.READ)
    size = np.array([f.size_bytes for f in work.files])[reads["file"]]
    assert (reads["bytes"] <= size).all() and (size - reads["bytes"]).sum() < steps


@pytest.mark.parametrize("name", ["genomicPrediction", "cosmoFlow"])
def test_training_reads_its_data_set_again_in_every_epoch(name: Any) -> None:
    work = stand_ins.workload(name=name)
    reads = moves(work, OperationKind.READ)
    shards = np.bincount(reads["file"])
    assert shards.tolist() == [10] * work.ranks, "each shard once an epoch"
    mine = reads[reads["rank"] == 5]["file"]
    assert len(set(mine.tolist())) > 5, "a rank reads other shards in other epochs"
    assert work.moved_bytes(OperationKind.READ) > work.moved_bytes(OperationKind.WRITE)


def test_the_simulation_writes_its_history_in_bursts() -> None:
    work = stand_ins.workload(name="E3SM")
    assert work.moved_bytes(OperationKind.WRITE) > work.moved_bytes(OperationKind.READ)
    mine = work.operations[work.operations["rank"] == 9]["kind"].tolist()
    step = [
        OperationKind.OPEN,
        OperationKind.READ,
        OperationKind.CLOSE,
        OperationKind.BARRIER,
        OperationKind.CREATE,
        OperationKind.WRITE,
        OperationKind.CLOSE,
        OperationKind.BARRIER,
    ]
    assert mine == step * 10


def test_stand_ins_are_drawn_by_seed() -> None:
    first, again, other = (stand_ins.workload(name="cosmoFlow", seed=s) for s in (1, 1, 2))
    assert (first.operations == again.operations).all() and first.files == again.files
    assert first.files != other.files
    assert set(get_args(stand_ins.Name)) == set(stand_ins.PUBLISHED) == set(PAPER)
    equal = stand_ins.workload(name="E3SM", spread=0.0)
    assert (
        max(f.size_bytes for f in equal.files if f.exists)
        - min(f.size_bytes for f in equal.files if f.exists)
        <= 1
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "VPIC"}, "expected one of"),
        ({"steps": 0}, "steps"),
        ({"spread": -1}, "spread"),
        ({"seed": -1}, "seed"),
    ],
)
def test_stand_ins_refuse(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        stand_ins.workload(**{"name": "E3SM", **given})


def test_the_scalability_study_is_made_in_about_a_second() -> None:
    """2,688 ranks, ten steps: figure 23."""
    start_s = time.process_time()
    made = [stand_ins.workload(name=name) for name in get_args(stand_ins.Name)]
    assert sum(work.ranks for work in made) == 2688
    assert time.process_time() - start_s < 2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**50), st.integers(1, 5000))
def test_even_parts_are_all_of_it(amount: int, parts: int) -> None:
    begin, length = even_parts(amount, parts, np.arange(parts))
    assert length.sum() == amount and begin[0] == 0 and (begin[1:] == np.cumsum(length)[:-1]).all()
    assert length.max() - length.min() <= 1


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 7),
)
def test_every_rank_meets_at_every_barrier_and_bytes_are_those_asked_for(
    ranks: int,
    blocks: int,
    segments: int,
    repetitions: int,
    shared: bool,
    mpi: bool,
    reorder: bool,
    new_files: bool,
    per_node: int,
) -> None:
    work = ior.workload(
        ranks=ranks,
        block_bytes=blocks * 10,
        transfer_bytes=10,
        segments=segments,
        repetitions=repetitions,
        shared=shared,
        interface="MPIIO" if mpi else "POSIX",
        collective=mpi,
        reorder=reorder,
        new_files=new_files,
        ranks_per_node=per_node,
    )
    of = work.operations
    assert (
        work.moved_bytes(OperationKind.WRITE)
        == work.moved_bytes(OperationKind.READ)
        == ranks * blocks * 10 * segments * repetitions
    )
    barriers = of["rank"][of["kind"] == OperationKind.BARRIER]
    assert len(set(np.bincount(barriers, minlength=ranks).tolist())) == 1
    assert (np.diff(of["rank"]) >= 0).all() and (
        (of["file"] >= 0) | (of["kind"] == OperationKind.BARRIER)
    ).all()
    sizes = np.array([f.size_bytes for f in work.files])
    ends = of["offset"] + of["span_bytes"]
    some = of["bytes"] > 0
    assert (ends[some] <= sizes[of["file"][some]]).all()
    assert np.bincount(of["file"][of["kind"] == OperationKind.CREATE], minlength=len(sizes)).tolist() == [
        1
    ] * len(sizes)
