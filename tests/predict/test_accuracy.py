"""The captured series, predicted walk-forward: AIPA beside the last value."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from tarazu.model import JobStep
from tarazu.predict.accuracy import PredictionAccuracy, match, mean_size_error, score, walk_forward
from tarazu.predict.aipa import explain_prediction, forecast
from tarazu.trace.darshan_runs import import_log
from tarazu.trace.records import RunRecord

DATA = Path(__file__).parent.parent / "data" / "traces"
SERIES = ("haccfpp", "ckpt", "iorm")


@cache
def series(name: str) -> tuple[RunRecord, ...]:
    logs = sorted(DATA.glob(f"series_{name}_*.darshan"))
    assert len(logs) == 5
    return tuple(import_log(log, mount="/scratch/run", fs_name="lustre") for log in logs)


@cache
def without_arguments(name: str) -> tuple[RunRecord, ...]:
    """The same runs to a predictor that sees no command line: time series alone."""
    return tuple(
        msgspec.structs.replace(r, step=msgspec.structs.replace(r.step, numbers=())) for r in series(name)
    )


def count_error(scored: PredictionAccuracy) -> float:
    """Above 0: more files were promised than came."""
    return scored.forecast_files / scored.files - 1


def report(name: str, kind: str, ours: list[PredictionAccuracy], last: list[PredictionAccuracy]) -> None:
    for i, (a, b) in enumerate(zip(ours, last, strict=True), 1):
        print(
            f"{name} run {i} ({kind}): size error {a.size_error:.2%} (last value {b.size_error:.2%}), "
            f"hits {a.hit_rate:.0%} ({b.hit_rate:.0%}), files {count_error(a):+.0%} ({count_error(b):+.0%})"
        )


@pytest.mark.parametrize("name", SERIES)
def test_time_series_alone_beat_the_last_value(name: str) -> None:
    runs = without_arguments(name)
    ours, last = walk_forward(runs), walk_forward(runs, "last")
    report(name, "series", ours, last)
    assert mean_size_error(ours) < mean_size_error(last)
    assert ours[-1].size_error < 0.04 and ours[-1].size_error < 0.5 * last[-1].size_error
    assert all(
        a.hit_rate >= b.hit_rate and abs(count_error(a)) <= abs(count_error(b)) for a, b in zip(ours, last)
    )


@pytest.mark.parametrize("name", SERIES)
def test_with_the_command_line_every_name_and_size_is_right_from_the_third_run_on(name: str) -> None:
    runs = series(name)
    ours, last = walk_forward(runs), walk_forward(runs, "last")
    report(name, "arguments", ours, last)
    assert all(a.hit_rate == 1.0 and count_error(a) == 0.0 for a in ours)
    assert all(a.size_error < 1e-5 for a in ours[1:])
    assert mean_size_error(ours) < 0.5 * mean_size_error(last)


def test_scores_count_what_they_say() -> None:
    first, second = series("iorm")[2:4]
    result = score(forecast([first], first.step, model="last"), second)
    assert (result.files, result.forecast_files, result.found) == (40, 32, 32)
    assert result.hit_rate == 0.8 and count_error(result) == pytest.approx(-0.2)
    assert result.size_error == 0.0 and result.byte_error == 0.0 and result.methods == {"last": 32}
    third = series("iorm")[4]
    result = score(forecast([first], first.step, model="last"), third)
    assert result.size_error == pytest.approx(1 / 11) and result.byte_error == pytest.approx(1 / 11)


def test_small_files_can_be_left_out_of_the_score() -> None:
    runs = series("ckpt")
    result = score(forecast(runs[:2], runs[2].step), runs[2], min_size_bytes=1 << 20)
    assert result.files == 48 and result.forecast_files == 48 and result.found == 48


def test_a_file_is_matched_exactly_before_by_template() -> None:
    run = series("iorm")[0]
    forecasts = forecast([run], run.step).files
    assert [f.name.key for f in match(run.files, forecasts) if f] == [f.key for f in run.files]
    renamed = [
        msgspec.structs.replace(f, key=f.key.replace("iorm", "iorm9"), precise="/x{rank}") for f in run.files
    ]
    assert [f.name.key for f in match(renamed, forecasts) if f] == [f.key for f in run.files]
    strange = [msgspec.structs.replace(f, key="/y", precise="/y", loose="/y") for f in run.files]
    assert match(strange, forecasts) == [None] * len(run.files)


def explained(runs: list[RunRecord], step: JobStep) -> list[str]:
    return explain_prediction(forecast(runs, step), runs, step)


def test_explanation_names_series_order_forecast_and_alternatives() -> None:
    runs = without_arguments("iorm")
    text = "\n".join(explained(runs[:4], runs[4].step))
    assert "ior: 40 files" in text and "/iorm.#.#  (8 ranks, 5 per rank" in text
    assert "8.0 MiB 9.0 MiB 10.0 MiB 10.0 MiB → 10.7 MiB each × 8  [arima: ARIMA(0,1,0) with drift" in text
    assert "last value → 10.0 MiB" in text
    text = "\n".join(explained(series("haccfpp")[:3], series("haccfpp")[3].step))
    assert "38 × argument 1 (130000)" in text
    assert explained([], runs[0].step)[-1] == "note: no run in history has files"
