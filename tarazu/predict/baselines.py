"""The models a prediction is measured against: last value, mean, drift. All share AIPA's names and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tarazu.model import JobStep
from tarazu.predict.aipa import Prediction, forecast
from tarazu.trace.records import KnownRun

BASELINES = ("last", "mean", "drift")


def baseline(name: str) -> Callable[[Sequence[KnownRun], JobStep], Prediction]:
    """`baseline("last")(history, step)`. Raises ValueError for a name that is not in BASELINES."""
    if name not in BASELINES:
        raise ValueError(f"expected a baseline out of {', '.join(BASELINES)}, found {name!r}")
    return lambda history, step: forecast(history, step, model=name)
