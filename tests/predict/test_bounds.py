"""Forecasts stay bounded and quick whatever a history or a step says."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.predict import aipa, classes, series
from tarazu.predict.aipa import extend, forecast
from tarazu.predict.name_parts import take_apart
from tarazu.trace.records import MOST_RANKS, FileRecord, RunRecord

Build = Callable[..., RunRecord]
MIB = 1 << 20


def per_rank(build: Build, number: int = 0, ranks: int = 4, **fields: Any) -> RunRecord:
    return build(lambda rank: [(f"/f.{rank}", MIB)], number=number, ranks=ranks, **fields)


@pytest.mark.parametrize("ranks", [MOST_RANKS, 2**31, 2**62, -5])
def test_a_step_that_says_it_has_billions_of_ranks_costs_nothing(build: Build, ranks: int) -> None:
    history = [per_rank(build, n) for n in range(3)]
    step = msgspec.structs.replace(history[0].step, ranks=ranks)
    tracemalloc.start()
    try:
        prediction = forecast(history, step)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert prediction.files == () and prediction.warnings
    assert peak < 50 << 20
    assert extend(history[0], step, horizon_s=1800).files == ()


def test_a_number_of_files_that_runs_away_is_left_out_and_the_rest_is_forecast(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aipa, "MOST_FILES", 100)
    history = [
        build(lambda rank: [("/small", MIB)] * (rank == 0) + [(f"/many.{rank}.{i}", MIB) for i in range(8)])
        for _ in range(2)
    ]
    step = msgspec.structs.replace(history[0].step, ranks=64)
    prediction = forecast(history, step)
    assert [f.name.key for f in prediction.files] == ["/small"]
    assert any(
        "512 files like /many.#.# left out: one forecast has at most 100" in w for w in prediction.warnings
    )


def test_templates_beyond_a_limit_are_left_out_smallest_first(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "MOST_CLASSES", 5)
    run = build(lambda rank: [(f"/{chr(97 + i)}", (i + 1) * MIB) for i in range(20)], ranks=1)
    prediction = forecast([run, run], run.step)
    assert sorted(f.name.key for f in prediction.files) == ["/p", "/q", "/r", "/s", "/t"]
    assert any("15 of 20 templates left out" in w for w in prediction.warnings)


def test_sizes_stay_below_what_lustre_and_databases_can_count(build: Build) -> None:
    history = [build(lambda rank, n=n: [("/f", 2**63 - 1 - 4 + n)], number=n, ranks=1) for n in range(5)]
    assert [f.size_bytes for f in forecast(history, history[0].step).files] == [1 << 60]


def test_fitting_ends_after_a_while_and_says_so(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "LONGEST_FITTING_S", 0.0001)
    history = [
        build(
            lambda rank, n=n: [
                (f"/{chr(97 + i)}", (100 + (7 * i + 13 * n * (i + 1)) % 29) * MIB) for i in range(8)
            ],
            number=n,
            ranks=1,
        )
        for n in range(8)
    ]
    prediction = forecast(history, history[0].step)
    assert len(prediction.files) == 8
    assert any("simpler models" in w for w in prediction.warnings)


def test_names_of_many_tokens_are_taken_apart_at_once() -> None:
    """Each token may take any text: trying all ways of sharing 200 characters among 12 takes for ever."""
    file = FileRecord("/" + "a" * 200 + "!", "/" + "{job}{host}" * 6 + "?", "/#", 0, (0,), 0, 0, 0.0, 1)
    take_apart(file)


def test_thousands_of_further_steps_do_not_exhaust_the_stack(build: Build) -> None:
    def run(number: int, steps: int) -> RunRecord:
        return build(lambda rank: [(f"/s.{i}", MIB) for i in range(steps)], number=number, ranks=1,
                     numbers=(float(steps),))  # fmt: skip

    step: JobStep = msgspec.structs.replace(run(0, 1).step, numbers=(6000.0,))
    prediction = forecast([run(0, 1000), run(1, 2000)], step)
    assert len(prediction.files) == 6000 and len({f.name.key for f in prediction.files}) == 6000


def test_the_time_of_a_forecast_grows_with_the_history_not_with_its_square(build: Build) -> None:
    """Per-process files, and one process with as many steps: both shapes of a large history."""

    def seconds(ranks: int, steps: int) -> float:
        """The fastest of three, without looks at what the tests before left in memory."""
        history = [
            build(
                lambda rank, n=n: [(f"/r{n}/s{s}.{rank}", (64 + n) * MIB) for s in range(steps)],
                number=n,
                ranks=ranks,
            )
            for n in range(4)
        ]
        took = []
        gc.freeze()
        try:
            for _ in range(3):
                started = time.process_time()
                assert len(forecast(history, history[-1].step).files) == ranks * steps
                took.append(time.process_time() - started)
        finally:
            gc.unfreeze()
        return min(took)

    for small, large in (((500, 1), (4000, 1)), ((1, 500), (1, 4000))):
        assert seconds(*large) < 40 * seconds(*small), "8 times the files"
