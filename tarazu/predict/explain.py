"""Why a prediction is what it is, in lines for people (`tarazu predict --explain`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tarazu.model import JobStep
from tarazu.predict.aipa import Prediction, SeriesReport
from tarazu.trace.records import KnownRun
from tarazu.units import human_bytes

MOST_SERIES = 6
"""Series shown per class."""
MOST_VALUES = 8


def explain_prediction(prediction: Prediction, history: Sequence[KnownRun], step: JobStep) -> list[str]:
    """Series, model and order, forecast, alternatives."""
    total = human_bytes(sum(f.size_bytes for f in prediction.files))
    lines = [
        f"{step.application}: {len(prediction.files)} files, {total}, from {len(history)} runs "
        f"({step.ranks} ranks, {step.nodes} nodes, arguments {_numbers(step.numbers)})"
    ]
    for (loose, shared), group in groupby(prediction.series, key=lambda r: (r.loose, r.shared)):
        reports = list(group)
        kind = "shared" if shared else f"{max(r.files for r in reports)} ranks"
        lines.append(f"{loose}  ({kind}, {len(reports)} per rank: {reports[0].count_detail})")
        for report in reports[:MOST_SERIES]:
            lines += _series(report)
        if len(reports) > MOST_SERIES:
            lines.append(f"  … and {len(reports) - MOST_SERIES} more")
    lines += [f"note: {text}" for text in prediction.warnings]
    return lines


def _series(report: SeriesReport) -> list[str]:
    size = report.size
    past = " ".join(human_bytes(v) for v in size.history[-MOST_VALUES:]) or "none"
    lines = [
        f"  #{report.nth}: {past} → {human_bytes(size.mean_bytes)} each × {report.files}"
        f"  [{size.method}: {size.detail}]"
    ]
    others = ", ".join(f"{label} → {human_bytes(value)}" for label, value in size.alternatives)
    if others:
        lines.append(f"      considered: {others}")
    return lines


def _numbers(numbers: Sequence[float]) -> str:
    return " ".join(f"{n:g}" for n in numbers) or "none"
