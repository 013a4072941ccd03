"""clientd is asked again ever later, and never by all at once."""

from __future__ import annotations

from tarazu.run.plan.schedule import Backoff


def test_waits_grow_with_a_jitter_and_stay_bounded() -> None:
    backoff = Backoff(0.25, 60.0)
    waits = [backoff.failed() for _ in range(2000)]
    assert all(0.125 <= w <= 60 for w in waits) and waits[0] <= 0.25 and min(waits[8:]) >= 30
    assert len(set(waits)) > 1900
    backoff.succeeded()
    assert backoff.failed() <= 0.25 and backoff.failed(at_least_s=10.0) >= 5
