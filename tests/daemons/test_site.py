"""Excluded targets, and each user's share of the promises."""

from __future__ import annotations

import pytest

from tarazu.allocate.ledger import Ledger
from tarazu.daemons.site import Exclusions, UserShare
from tarazu.errors import ConfigError
from tarazu.model import EOF, Component, Layout, Ost, SystemView
from tarazu.wire.messages import AllocationRequest, FileSpec

GIB = 1 << 30
VIEW = SystemView(
    "scratch",
    0.0,
    tuple(Ost(i, "oss1", 10 * GIB, 10 * GIB, 10 * GIB, pools=("flash",) if i > 3 else ()) for i in range(6)),
)


def usable(*entries: str) -> list[int]:
    return [o.index for o in Exclusions(entries).apply(VIEW).osts if o.usable]


def test_osts_and_pools_are_excluded_on_their_own_file_system() -> None:
    assert usable() == [0, 1, 2, 3, 4, 5]
    assert usable("scratch:0-1,3") == [2, 4, 5]
    assert usable("scratch.flash") == [0, 1, 2, 3]
    assert usable("other:0-5", "other.flash") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("entry", ["scratch", "scratch:x", ":1", ".flash", "scratch."])
def test_anything_else_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"mdsd\.exclude: expected entries such as"):
        Exclusions([entry])


def ask(id: str, uid: int, gib: int) -> AllocationRequest:
    layout = Layout((Component(0, EOF, 1 << 20, 1),))
    return AllocationRequest(id, "scratch", uid, "", (layout,), (FileSpec(gib * GIB, 0),), 1.0, 60.0)


def test_one_user_cannot_hold_all_promises_and_others_are_not_touched() -> None:
    ledger = Ledger()
    shares = UserShare(0.5, ledger)
    first = ask("a", 1000, 20)
    assert shares.refusal(first, VIEW) == ""
    ledger.promise("a", "scratch", 60.0, [{0: 10 * GIB, 1: 10 * GIB}])
    shares.note(first)
    assert "mdsd.user_share" in shares.refusal(ask("b", 1000, 11), VIEW)
    assert shares.refusal(ask("b", 1000, 10), VIEW) == ""
    assert shares.refusal(ask("c", 1001, 30), VIEW) == ""
    ledger.ended("a")
    assert shares.refusal(ask("b", 1000, 30), VIEW) == ""
