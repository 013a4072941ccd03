from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.predict.aipa import forecast
from tarazu.predict.series import MODELS, SeriesModel
from tarazu.trace.records import RunRecord

Build = Callable[..., RunRecord]
MIB = 1 << 20
FIXED = settings(deadline=None, max_examples=40, derandomize=True)


def only_size(history: list[RunRecord], step: Any, **options: Any) -> int:
    sizes = {f.size_bytes for f in forecast(history, step, **options).files}
    assert len(sizes) == 1
    return sizes.pop()


def runs_of(build: Build, sizes: list[int], ranks: int = 2, **fields: Any) -> list[RunRecord]:
    return [
        build(lambda rank, s=s: [(f"/f.{rank}", s)], number=n, ranks=ranks, **fields)
        for n, s in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "expected", "method"),
    [
        ([100], 100, "last"),
        ([100, 110], 120, "drift"),
        ([100, 900], 900, "last"),
        ([100, 110, 125], 137.5, "drift"),
        ([100, 130, 90], 90, "last"),
        ([100, 110, 120, 130], 140, "arima"),
        ([70, 70, 70, 70], 70, "arima"),
        ([100, 100, 100, 200], 200, "arima"),
    ],
)
def test_short_series(sizes: list[int], expected: float, method: str) -> None:
    estimate = SeriesModel().ahead(sizes)
    assert estimate.values[0] == pytest.approx(expected) and estimate.method == method


def test_autoregressive_series_are_followed() -> None:
    alternating = [100.0, 20, 101, 19, 99, 21, 100, 20, 101, 20, 100, 19]
    estimate = SeriesModel().ahead(alternating)
    assert estimate.method == "arima" and estimate.values[0] == pytest.approx(100, rel=0.1)
    assert "ARIMA(1,0," in estimate.detail or "ARIMA(2,0," in estimate.detail
    assert len(estimate.alternatives) > 2


def test_noise_around_a_level_is_averaged() -> None:
    noise = [100.0, 108, 95, 103, 92, 106, 99, 104, 93, 107]
    value = SeriesModel().ahead(noise).values[0]
    assert abs(value - 100.7) < 6 < abs(noise[-1] - 100.7)


def test_trend_with_noise_beats_the_last_value() -> None:
    series = [100.0 + 10 * n + (-1) ** n * 2 for n in range(12)]
    value = SeriesModel().ahead(series).values[0]
    assert abs(value - 220) < abs(series[-1] - 220)


def test_accelerating_growth_is_differenced_twice() -> None:
    estimate = SeriesModel().ahead([float(100 + n * n) for n in range(9)])
    assert "ARIMA(0,2," in estimate.detail or "ARIMA(1,2," in estimate.detail
    assert estimate.values[0] == pytest.approx(181, rel=0.02)


def test_series_of_one_shape_are_fitted_once() -> None:
    model = SeriesModel()
    base = [5.0, 9, 6, 10, 7, 8]
    first = model.ahead(base)
    second = model.ahead([1000 + 7 * v for v in base])
    assert model.made == 1
    assert second.values[0] == pytest.approx(1000 + 7 * first.values[0])


def test_kept_fits_of_a_whole_history_serve_its_newest_values() -> None:
    """Three values by turns: seen in thirty runs, not in ten."""
    whole = [1e6 * (10 + 3 * (n % 3) + (7 * n * n) % 5 / 10) for n in range(31)]
    after_the_run = SeriesModel()
    expected = after_the_run.ahead(whole)
    at_the_start = SeriesModel(fits=after_the_run.fits)
    assert at_the_start.ahead(whole[-10:]).values == pytest.approx(expected.values)
    assert at_the_start.made == 0 and after_the_run.made == 1
    assert at_the_start.ahead([*whole[-9:], 5e6]) and at_the_start.made == 1, "another run has come"


def test_an_order_that_does_not_foresee_the_last_value_is_not_taken() -> None:
    alternating = [100.0, 20, 101, 19, 99, 21, 100, 20, 101, 20, 100, 19]
    assert "ARIMA(1,0," in SeriesModel().ahead(alternating).detail
    assert SeriesModel().ahead([*alternating, 20.0]).detail.startswith("ARIMA(0,0,0)")


@FIXED
@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=9), st.sampled_from(MODELS), st.integers(1, 4))
def test_forecasts_are_finite_and_never_absurd(series: list[int], model: str, steps: int) -> None:
    estimate = SeriesModel(model).ahead(series, steps)
    assert len(estimate.values) == steps
    for k, value in enumerate(estimate.values):
        assert math.isfinite(value) and 0 <= value <= 2 * (1 + k) * max(series)


def test_falling_sizes_stay_above_zero(build: Build) -> None:
    history = runs_of(build, [500 * MIB, 400 * MIB, 300 * MIB, 200 * MIB, 100 * MIB])
    assert only_size(history, history[0].step) == 50 * MIB


def test_an_argument_explains_sizes(build: Build) -> None:
    values = (100_000, 400_000, 200_000)
    history = [
        build(lambda rank, v=v: [(f"/h.{rank}", 24 * MIB + 38 * v)], number=n, ranks=8, numbers=(v, 3.0))
        for n, v in enumerate(values)
    ]
    step = msgspec.structs.replace(history[0].step, numbers=(1_000_000.0, 3.0))
    prediction = forecast(history, step)
    assert {f.size_bytes for f in prediction.files} == {24 * MIB + 38_000_000}
    assert prediction.methods == {"regression": 8}


def test_an_argument_that_is_the_size_is_believed_after_one_run(build: Build) -> None:
    history = runs_of(build, [8 * MIB], numbers=(8.0 * MIB, 4.0))
    step = msgspec.structs.replace(history[0].step, numbers=(32.0 * MIB, 4.0))
    assert only_size(history, step) == 32 * MIB


def test_arguments_that_explain_nothing_are_ignored(build: Build) -> None:
    history = [
        build(lambda rank, s=s: [("/f", s * MIB)], number=n, ranks=1, numbers=(a,))
        for n, (s, a) in enumerate(((10, 5.0), (12, 90.0), (14, 7.0), (16, 8.0)))
    ]
    assert only_size(history, history[0].step) == 18 * MIB


def test_strong_scaling_keeps_the_sum_over_ranks(build: Build) -> None:
    history = [
        build(lambda rank, r=r: [(f"/s.{rank}", 960 * MIB // r)], number=n, ranks=r)
        for n, r in enumerate((4, 8, 2))
    ]
    step = msgspec.structs.replace(history[0].step, ranks=16)
    prediction = forecast(history, step)
    assert len(prediction.files) == 16 and {f.size_bytes for f in prediction.files} == {60 * MIB}


def test_argument_never_varied_is_noted(build: Build) -> None:
    history = runs_of(build, [MIB, MIB], numbers=(5.0,))
    step = msgspec.structs.replace(history[0].step, numbers=(50.0,))
    assert any("argument 1 is 50" in w for w in forecast(history, step).warnings)
    step = msgspec.structs.replace(history[0].step, numbers=(5.0, 6.0))
    assert any("another number of numeric arguments" in w for w in forecast(history, step).warnings)


def test_unequal_ranks_keep_their_share(build: Build) -> None:
    history = [
        build(lambda rank, n=n: [(f"/w.{rank}", (rank + 1) * (10 + n) * MIB)], number=n, ranks=4)
        for n in range(5)
    ]
    sizes = {f.name.rank: f.size_bytes for f in forecast(history, history[0].step).files}
    assert sizes == {r: (r + 1) * 15 * MIB for r in range(4)}


def test_a_rank_that_was_never_seen_gets_the_mean(build: Build) -> None:
    history = [
        build(lambda rank: [(f"/w.{rank}", (1 + rank % 2) * MIB)], number=n, ranks=4) for n in range(3)
    ]
    step = msgspec.structs.replace(history[0].step, ranks=6)
    sizes = {f.name.rank: f.size_bytes for f in forecast(history, step).files}
    assert sizes[4] == sizes[5] == pytest.approx(1.5 * MIB, abs=1)


def test_files_never_closed_do_not_spoil_the_series(build: Build) -> None:
    history = runs_of(build, [10 * MIB, 12 * MIB, 14 * MIB])
    last = history[-1]
    lost = tuple(msgspec.structs.replace(f, closed=False, size_bytes=0) for f in last.files[:1])
    history[-1] = msgspec.structs.replace(last, files=lost + last.files[1:])
    assert only_size(history, last.step) == 16 * MIB


@pytest.mark.parametrize("sign", ["exit_status", "lost_bytes", "dropped_records"])
def test_a_run_that_broke_off_is_left_out(build: Build, sign: str) -> None:
    full = [build(lambda rank: [(f"/f.{s}.{rank}", MIB) for s in range(6)], number=n) for n in range(3)]
    broken = build(lambda rank: [(f"/f.{s}.{rank}", MIB) for s in range(2)], number=3, **{sign: 1})
    prediction = forecast([*full, broken], full[0].step)
    assert len(prediction.files) == 24 and any("left out" in w for w in prediction.warnings)
    whole = build(lambda rank: [(f"/f.{s}.{rank}", MIB) for s in range(2)], number=3)
    assert len(forecast([*full, whole], full[0].step).files) == 8, "fewer files without a sign of loss count"


def test_many_noisy_series_of_a_class_are_forecast_as_a_whole(build: Build) -> None:
    def noisy(number: int) -> Callable[[int], list[tuple[str, int]]]:
        return lambda rank: [
            (f"/n/f{s:04}.{rank}", (100 + s + (7 * s * s + 13 * number * (s + 1)) % 11) * MIB)
            for s in range(300)
        ]

    history = [build(noisy(n), number=n, ranks=1) for n in range(6)]
    prediction = forecast(history, history[0].step)
    assert prediction.fits <= 9
    for f in prediction.files:
        s = int(f.name.key[4:8])
        assert f.size_bytes == pytest.approx((105 + s) * MIB, rel=0.08)


@pytest.mark.long
def test_sixteen_thousand_files_cost_a_handful_of_fits(build: Build) -> None:
    history = [
        build(
            lambda rank, n=n: [(f"/b/run{n}/s{s}.{rank:04}", (64 + s + (n * n) % 5) * MIB) for s in range(8)],
            number=n,
            ranks=500,
            nodes=10,
        )
        for n in range(5)
    ]
    step = msgspec.structs.replace(history[-1].step, ranks=2000, nodes=40)
    prediction = forecast(history, step)
    assert len(prediction.files) == 16_000 and prediction.fits <= 2
    assert len({f.name.key for f in prediction.files}) == 16_000


@pytest.mark.parametrize("model", ["last", "mean", "drift"])
def test_baselines(build: Build, model: str) -> None:
    history = runs_of(build, [10 * MIB, 20 * MIB, 60 * MIB])
    expected = {"last": 60, "mean": 30, "drift": 85}[model]
    assert only_size(history, history[0].step, model=model) == expected * MIB


def test_unknown_models_are_refused() -> None:
    with pytest.raises(ValueError, match="arima, last, mean, drift"):
        SeriesModel("neural")


def test_no_history_is_no_forecast(build: Build) -> None:
    empty = msgspec.structs.replace(build(lambda rank: []), files=())
    for history in ([], [empty]):
        prediction = forecast(history, empty.step)
        assert prediction.files == () and prediction.warnings


def test_a_shared_file_grows_with_an_argument_and_with_ranks(build: Build) -> None:
    """Ranks never varied, an argument did: the argument's effect is per rank."""
    history = [
        build(
            lambda rank, v=v: [("/ssf", 8 * (MIB + 38 * v))],
            number=n,
            ranks=8,
            shared=True,
            numbers=(float(v),),
        )
        for n, v in enumerate((100_000, 500_000, 1_000_000))
    ]
    step = msgspec.structs.replace(history[0].step, ranks=16, numbers=(500_000.0,))
    assert only_size(history, step) == 16 * (MIB + 38 * 500_000)


def test_a_shared_file_whose_size_is_an_argument_does_not_grow_with_ranks(build: Build) -> None:
    history = [
        build(
            lambda rank, s=s: [("/ssf", s * MIB)], number=n, ranks=8, shared=True, numbers=(float(s * MIB),)
        )
        for n, s in enumerate((64, 256, 128))
    ]
    step = msgspec.structs.replace(history[0].step, ranks=16, numbers=(512.0 * MIB,))
    assert only_size(history, step) == 512 * MIB
