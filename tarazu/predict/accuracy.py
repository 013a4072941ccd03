"""How good a prediction was: names found as the placement library would find them, sizes, number of files."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.model import ANY_RANK, Forecast
from tarazu.predict.aipa import Prediction, forecast
from tarazu.trace.records import FileRecord, RunRecord


class PredictionAccuracy(msgspec.Struct, frozen=True):
    """One prediction beside the run that followed. Shares are 0-1."""

    start_s: float
    """Of the run that was predicted."""
    files: int
    """Files that the run created, not smaller than the least size asked for."""
    forecast_files: int
    found: int
    """Files whose name was found."""
    size_error: float
    """Mean over found files of |forecast − size| / size (MAPE)."""
    byte_error: float
    """Sum of |forecast − size| over the sum of sizes."""
    methods: dict[str, int]

    @property
    def hit_rate(self) -> float:
        return self.found / self.files if self.files else 1.0


def match(files: Sequence[FileRecord], forecasts: Sequence[Forecast]) -> list[Forecast | None]:
    """The forecast that each file finds, in the order of lookups in `docs/formats.md`, "Names"."""
    rows: dict[tuple[object, ...], Forecast] = {}
    for f in forecasts:
        name = f.name
        if name.volatile:
            rows.setdefault(("T", name.precise, name.rank, name.nth_precise), f)
        else:
            rows.setdefault(("E", name.key), f)
        rows.setdefault(("L", name.loose, name.rank, name.nth_loose), f)
    matches: list[Forecast | None] = []
    for file in files:
        ranks = dict.fromkeys([*file.creators[:1], file.rank, ANY_RANK])
        lookups: list[tuple[object, ...]] = [("E", file.key)]
        lookups += [("T", file.precise, r, file.nth_precise) for r in ranks]
        lookups += [("L", file.loose, r, file.nth_loose) for r in ranks]
        matches.append(next((rows[key] for key in lookups if key in rows), None))
    return matches


def score(prediction: Prediction, run: RunRecord, min_size_bytes: int = 0) -> PredictionAccuracy:
    """Compare a prediction with what the run really created, over files of at least `min_size_bytes`."""
    files = [f for f in run.files if f.size_bytes >= min_size_bytes]
    pairs = [(a, f) for a, f in zip(files, match(files, prediction.files), strict=True) if f is not None]
    sized = [(a.size_bytes, f.size_bytes) for a, f in pairs if a.closed and a.size_bytes > 0]
    errors = [abs(guess - real) for real, guess in sized]
    total = sum(real for real, _ in sized)
    return PredictionAccuracy(
        start_s=run.start_s,
        files=len(files),
        forecast_files=sum(f.size_bytes >= min_size_bytes for f in prediction.files),
        found=len(pairs),
        size_error=sum(e / real for e, (real, _) in zip(errors, sized, strict=True)) / max(len(sized), 1),
        byte_error=sum(errors) / total if total else 0.0,
        methods=prediction.methods,
    )


def walk_forward(history: Sequence[RunRecord], model: str = "arima") -> list[PredictionAccuracy]:
    """Predict each run but the first from those before it, and score it.

    `model`: as for `forecast`; `last`, `mean` and `drift` are what AIPA is measured against, with its names and counts.
    """
    scores = []
    for i in range(1, len(history)):
        before, run = history[:i], history[i]
        scores.append(score(forecast(before, run.step, model=model), run))
    return scores


def mean_size_error(scores: Sequence[PredictionAccuracy]) -> float:
    """Mean of the MAPE over runs; 0 for no runs."""
    return sum(s.size_error for s in scores) / len(scores) if scores else 0.0
