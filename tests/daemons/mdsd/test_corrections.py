"""What corrects the estimate for those who ask: their own runs, else what others brought."""

from __future__ import annotations

import pytest

from tarazu.daemons.mdsd import corrections
from tarazu.daemons.mdsd.corrections import Corrections
from tarazu.evidence.model_error import AS_ESTIMATED, RECENT_S
from tarazu.model import Correction
from tarazu.wire.messages import AllocationRequest


def ask(uid: int, streams: float = 1.0, requests: float = 1.0) -> AllocationRequest:
    return AllocationRequest("", "lustre", uid, "", (), (), 1, 1, correction=Correction(streams, requests))


def test_who_knows_nothing_gets_the_median_of_the_other_users() -> None:
    known = Corrections()
    assert known.of("lustre", [ask(1)], 0) == AS_ESTIMATED
    assert known.of("lustre", [ask(2, 3.0)], 0) == Correction(3.0)
    for _ in range(9):
        known.of("lustre", [ask(3, 0.1)], 0)
    known.of("lustre", [ask(4, 2.0, 0.5)], 0)
    assert known.of("lustre", [ask(1)], 0) == Correction(2.0, 0.5)
    assert known.of("lustre", [ask(1), ask(2, 3.0)], 0) == Correction(3.0, 0.5)
    assert known.of("other", [ask(1)], 0) == AS_ESTIMATED
    assert known.of("lustre", [ask(1)], RECENT_S + 1) == AS_ESTIMATED


def test_what_is_known_of_users_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrections, "MOST_USERS", 2)
    known = Corrections()
    for uid in (1, 2, 1, 3):
        known.of("lustre", [ask(uid, 1.0 + uid)], 0)
    assert known.of("lustre", [ask(9)], 0) == Correction(3.0)
