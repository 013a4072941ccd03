"""When to predict again, to retrain and to record in full (paper, sections 5.5.1 and 5.7).

During a run only the first: each prediction fits its models anew, to this run too, so there is nothing to retrain; and
how a run is recorded is settled when it starts. The other two follow between runs. How the paper's "cumulatively" is
read: docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from tarazu.trace.recorded import Recorded, sharing

if TYPE_CHECKING:
    from tarazu.trace.records import KnownRun

PREDICT_AGAIN = 0.10
"""Share of misses from which the files to come are predicted again."""
RETRAIN = 0.30
"""Misses of the latest runs, added up, from which the model forgets what was before them."""
RECORD_AGAIN = 0.50
"""Share of files not found from which the next run is recorded in full."""


def miss_rate(outcomes: Mapping[str, int]) -> float:
    """Misses over managed creates. Late creates (before the map arrived) are managed but no misses.

    Creates that nobody wanted placed (`unmanaged`, `skipped`) do not count.
    """
    managed = sum(n for outcome, n in outcomes.items() if outcome not in ("unmanaged", "skipped"))
    return outcomes.get("miss", 0) / managed if managed else 0.0


class MissTracker:
    """The rule during a run: each 10 % of misses asks for a prediction."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def predicts(self, outcomes: Mapping[str, int]) -> bool:
        """`outcomes`: counts since the start of the run. Counts from the last prediction on are judged."""
        new = {o: n - self._seen.get(o, 0) for o, n in outcomes.items()}
        if miss_rate(new) < PREDICT_AGAIN:
            return False
        self._seen = dict(outcomes)
        return True


class RecordingDecision(msgspec.Struct, frozen=True):
    """How the next run is recorded, and whether the past before a change is to be forgotten."""

    record_mode: Literal["full", "light"]
    retrain: bool
    reason: str
    since: int = 0
    """Index of the first run that a retrained model should use; 0: all of them."""


def decide(history: Sequence[KnownRun | Recorded]) -> RecordingDecision:
    """The rules between runs, from the history (oldest first)."""
    if not history:
        return RecordingDecision("full", False, "first run")
    last = history[-1]
    cumulative, since = _cumulative(history)
    retrain = cumulative >= RETRAIN - 1e-9
    first = since if retrain else 0
    missed = miss_rate(last.outcomes)
    if missed > RECORD_AGAIN:
        text = f"{missed:.0%} of the last run's files were not found"
        return RecordingDecision("full", True, text, len(history) - 1)
    changed = _changed_sharing(history)
    if changed:
        return RecordingDecision("full", retrain, changed, first)
    if not any(run.mode == "full" for run in history):
        return RecordingDecision("full", retrain, "no run in history counted its writes", first)
    if retrain:
        return RecordingDecision(
            "light", True, f"misses add up to {cumulative:.0%} over the last runs", first
        )
    return RecordingDecision("light", False, f"{missed:.0%} misses in the last run")


def _cumulative(history: Sequence[KnownRun | Recorded]) -> tuple[float, int]:
    """Misses added up over the latest runs that each had enough of them, and the first of these runs."""
    total, since = 0.0, len(history)
    for i in range(len(history) - 1, -1, -1):
        missed = miss_rate(history[i].outcomes)
        if missed < PREDICT_AGAIN:
            break
        total += missed
        since = i
    return total, since


def _changed_sharing(history: Sequence[KnownRun | Recorded]) -> str:
    """Why the sharing of files is not what it was in the last full recording; empty when it is."""
    full = next((run for run in reversed(history) if run.mode == "full"), None)
    last = history[-1]
    if full is None or full is last:
        return ""
    before, now = _shared(full), _shared(last)
    common = before.keys() & now.keys()
    changed = sorted(name for name in common if before[name] != now[name])
    if changed:
        return f"files like {changed[0]} are {'shared' if now[changed[0]] else 'not shared'} now"
    if now and not common:
        return "no file of the last run is like those of the last full recording"
    return ""


def _shared(run: KnownRun | Recorded) -> dict[str, bool]:
    return run.shared if isinstance(run, Recorded) else sharing(run.files)
