from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from tarazu.model import ANY_RANK, FileName
from tarazu.native import template
from tarazu.predict.accuracy import score, walk_forward
from tarazu.predict.aipa import forecast
from tarazu.predict.name_parts import next_number, rank_number
from tarazu.trace.records import RunRecord

Build = Callable[..., RunRecord]
MIB = 1 << 20


def by_key(run: RunRecord) -> dict[str, int]:
    return {f.key: f.size_bytes for f in run.files}


def test_numbers_are_continued() -> None:
    assert next_number([5]) == 5
    assert next_number([5, 5, 5]) == 5
    assert next_number([1, 2, 3]) == 4
    assert next_number([0, 100]) == 200
    assert next_number([1, 2, 4]) == 5, "a run that failed left a gap"
    assert next_number([3, 9, 4, 100]) == 100, "nothing to continue"
    assert next_number([5, 3, 1]) == 0


def test_new_ranks_get_numbers() -> None:
    assert rank_number({0: 0, 1: 1, 2: 2}, 7) == 7
    assert rank_number({0: 3, 1: 3}, 7) == 3
    assert rank_number({0: 10, 2: 14}, 4) == 18
    assert rank_number({0: 1, 1: 9, 2: 4}, 3) == 4


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_run_counter_step_and_rank_in_the_name_are_guessed_exactly(build: Build, runs: int) -> None:
    def named(number: int) -> Callable[[int], list[tuple[str, int]]]:
        return lambda rank: [
            (f"/exp/run{number:04}/ckpt.{100 * s:05}.{rank:03}", (number + 1) * MIB) for s in range(5)
        ]

    history = [build(named(n), number=n, ranks=6) for n in range(runs + 1)]
    prediction = forecast(history[:-1], history[-1].step)
    assert {f.name.key for f in prediction.files} == set(by_key(history[-1]))
    actual = {f.key: f for f in history[-1].files}
    for f in prediction.files:
        real = actual[f.name.key]
        name = [getattr(real, field) for field in FileName.__struct_fields__]
        assert f.name == FileName(*name)


def test_job_id_and_date_directories_hit_with_ranks_on_other_nodes(build: Build) -> None:
    def run(number: int) -> RunRecord:
        when = datetime.fromtimestamp(1.7e9 + 100_000 * number, UTC).strftime("%Y-%m-%d_%H%M%S")
        job = f"{71000 + 137 * number}"
        hosts = lambda rank: f"nid{(rank + 5 * number) % 4:05}"  # noqa: E731
        return build(
            lambda rank: [
                (f"/proj/{job}/{when}/{hosts(rank)}/out.{s}.{rank}", (8 + number) * MIB) for s in range(3)
            ],
            number=number,
            ranks=16,
            nodes=4,
            job_id=job,
            hosts=hosts,
        )

    history = [run(n) for n in range(5)]
    assert all(f.volatile for f in history[0].files)
    for result in walk_forward(history):
        assert result.hit_rate == 1.0 and result.forecast_files == result.files
    prediction = forecast(history[:-1], history[-1].step)
    assert all(f"/proj/{history[-1].step.job_id}/" in f.name.key for f in prediction.files)


def test_stable_names_in_changing_order_keep_their_sizes(build: Build) -> None:
    names = [("/out/big.1", 900 * MIB), ("/out/small.2", 2 * MIB), ("/out/mid.3", 70 * MIB)]
    history = [build(lambda rank, k=k: names[k % 3 :] + names[: k % 3], number=k, ranks=1) for k in range(5)]
    prediction = forecast(history[:-1], history[-1].step)
    assert {f.name.key: f.size_bytes for f in prediction.files} == dict(names)


def test_same_template_in_changing_order_keeps_sizes_by_name(build: Build) -> None:
    sizes = [100, 3, 47, 900]
    orders = ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 0, 1], [1, 0, 3, 2])
    history = [
        build(lambda rank, o=o: [(f"/out/part.{i + 10}", sizes[i] * MIB) for i in o], number=n, ranks=1)
        for n, o in enumerate(orders)
    ]
    prediction = forecast(history[:-1], history[-1].step)
    assert {f.name.key: f.size_bytes for f in prediction.files} == {
        f"/out/part.{i + 10}": s * MIB for i, s in enumerate(sizes)
    }


def test_more_ranks_get_the_profile_of_the_others(build: Build) -> None:
    def named(rank: int) -> list[tuple[str, int]]:
        return [(f"/o/d{rank:02}/f.{s}.{rank}", (10 + s) * MIB) for s in range(4)]

    history = [build(named, number=n, ranks=4) for n in range(3)]
    bigger = build(named, number=3, ranks=12)
    prediction = forecast(history, bigger.step)
    assert {f.name.key: f.size_bytes for f in prediction.files} == by_key(bigger)
    for f in prediction.files:
        names = template(f.name.key, job_id="4003", rank=f.name.rank)
        assert (f.name.precise, f.name.loose) == (names.precise, names.loose)
    smaller = build(named, number=3, ranks=2)
    assert {f.name.key for f in forecast(history, smaller.step).files} == set(by_key(smaller))


def test_one_writer_per_node_stays_one_per_node(build: Build) -> None:
    def named(stride: int) -> Callable[[int], list[tuple[str, int]]]:
        return lambda rank: [(f"/agg.{rank}", MIB)] if rank % stride == 0 else []

    history = [build(named(4), number=n, ranks=16, nodes=4) for n in range(2)]
    bigger = build(named(8), number=2, ranks=32, nodes=4)
    assert sorted(f.name.rank for f in forecast(history, bigger.step).files) == [0, 8, 16, 24]


def test_more_steps_are_continued_and_keep_their_growth(build: Build) -> None:
    def run(number: int, steps: int) -> RunRecord:
        return build(
            lambda rank: [(f"/c/ckpt.{10 * s:04}.{rank}", (20 + 3 * s) * MIB) for s in range(steps)],
            number=number,
            ranks=3,
            numbers=(float(steps), 7.0),
        )

    history = [run(n, steps) for n, steps in enumerate((5, 6, 7))]
    prediction = forecast(history, run(3, 12).step)
    assert {f.name.key: f.size_bytes for f in prediction.files} == by_key(run(3, 12))
    fewer = forecast(history, run(3, 2).step)
    assert {f.name.key for f in fewer.files} == set(by_key(run(3, 2)))


def test_steps_that_go_on_where_the_last_run_stopped(build: Build) -> None:
    history = [
        build(lambda rank, n=n: [(f"/r/s{6 * n + s}.{rank}", MIB) for s in range(6)], number=n, ranks=2)
        for n in range(4)
    ]
    prediction = forecast(history[:-1], history[-1].step)
    assert {f.name.key for f in prediction.files} == set(by_key(history[-1]))


def test_unequal_numbers_of_files_per_rank_are_kept(build: Build) -> None:
    def named(rank: int) -> list[tuple[str, int]]:
        return [(f"/u/f.{rank}.{s}", MIB) for s in range(6 if rank == 0 else 2)]

    history = [build(named, number=n) for n in range(3)]
    assert {f.name.key for f in forecast(history, history[0].step).files} == set(by_key(history[0]))


def test_files_written_every_second_run_are_expected_also_after_a_run_without_them(build: Build) -> None:
    def run(number: int) -> RunRecord:
        extra = [("/restart.h5", 50 * MIB)] if number % 2 else []
        return build(lambda rank: [(f"/out.{rank}", MIB), *extra], number=number, ranks=1)

    history = [run(n) for n in range(6)]
    assert "/restart.h5" in {f.name.key for f in forecast(history[:5], history[5].step).files}
    given_up = [*history[:5], run(6), run(8)]
    assert "/restart.h5" not in {f.name.key for f in forecast(given_up, history[5].step).files}


def test_shared_file_is_of_any_rank_with_writers_and_contiguity(build: Build) -> None:
    history = [
        build(
            lambda rank, n=n: [(f"/ssf.{n}", (8 + n) * MIB)], number=n, ranks=8, shared=True, contiguous=True
        )
        for n in range(4)
    ]
    (one,) = forecast(history[:3], history[3].step).files
    assert (one.name.rank, one.writers, one.contiguous) == (ANY_RANK, 8, True)
    assert one.name.key == "/ssf.3" and one.size_bytes == 11 * MIB
    assert score(forecast(history[:3], history[3].step), history[3]).hit_rate == 1.0


def test_shared_file_on_more_ranks_grows_with_them(build: Build) -> None:
    history = [build(lambda rank: [("/ssf", 80 * MIB)], number=n, ranks=8, shared=True) for n in range(3)]
    bigger = build(lambda rank: [("/ssf", 160 * MIB)], number=3, ranks=16, shared=True)
    (one,) = forecast(history, bigger.step).files
    assert one.size_bytes == 160 * MIB and one.writers == 16


def test_one_subfile_per_group_of_ranks_is_told_apart(build: Build) -> None:
    """Several shared files with one template, each created by the first rank of its group."""

    def run(number: int) -> RunRecord:
        whole = build(lambda rank: [(f"/sub/p.{rank}", (rank + 1) * MIB)], number=number, ranks=8)
        files = tuple(
            msgspec.structs.replace(f, rank=ANY_RANK, writers=4) for f in whole.files if f.rank % 4 == 0
        )
        return msgspec.structs.replace(whole, files=files)

    history = [run(n) for n in range(3)]
    prediction = forecast(history, history[0].step)
    assert {(f.name.key, f.name.rank, f.size_bytes) for f in prediction.files} == {
        ("/sub/p.0", 0, MIB),
        ("/sub/p.4", 4, 5 * MIB),
    }


def test_ranks_that_the_step_did_not_know_of_are_kept(build: Build) -> None:
    """A launcher that nobody recognised: the step says one rank, the processes say eight."""
    run = build(lambda rank: [(f"/k.{rank}", MIB)], ranks=8)
    unknown = msgspec.structs.replace(run, step=msgspec.structs.replace(run.step, ranks=1))
    for ranks in (1, 2):
        step = msgspec.structs.replace(run.step, ranks=ranks)
        assert {f.name.rank for f in forecast([unknown], step).files} == set(range(8))


def test_contiguity_is_remembered_from_the_last_full_recording(build: Build) -> None:
    full = build(lambda rank: [("/ssf", 80 * MIB)], ranks=8, shared=True, contiguous=True)
    files = tuple(msgspec.structs.replace(f, counted=False, contiguous=False) for f in full.files)
    light = msgspec.structs.replace(full, mode="light", files=files)
    assert forecast([full, light, light], full.step).files[0].contiguous
    assert not forecast([light, light], full.step).files[0].contiguous
