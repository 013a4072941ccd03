"""Promised creates: seen by the next allocation, gone with the step, bounded."""

from __future__ import annotations

from tarazu.daemons.mdsd import creates
from tarazu.daemons.mdsd.creates import PromisedCreates
from tarazu.model import Mdt, SystemView

VIEW = SystemView("lustre", 0.0, (), mdts=tuple(Mdt(i, "m", 1, 1, 1, 1) for i in range(3)))


def on(promised: PromisedCreates, view: SystemView = VIEW) -> list[int]:
    return [mdt.promised_creates for mdt in promised.apply(view).mdts]


def promise(of: PromisedCreates, id: str, *, uid: int = 7, now: float = 0.0, alive_s: float = 0.0) -> None:
    of.promise(id, "lustre", uid, {1: 100}, now=now, expires_s=60.0, alive_s=alive_s)


def test_the_view_shows_what_is_promised_until_the_step_ends() -> None:
    promised = PromisedCreates()
    promise(promised, "a")
    promise(promised, "b")
    promise(promised, "b")
    assert on(promised) == [0, 200, 0]
    assert on(promised, SystemView("other", 0.0, (), mdts=VIEW.mdts)) == [0, 0, 0]
    assert promised.apply(SystemView("lustre", 0.0, ())).mdts == ()
    promised.ended("a")
    promised.ended("unknown")
    assert on(promised) == [0, 100, 0]


def test_what_is_over_or_silent_is_dropped() -> None:
    promised = PromisedCreates()
    promise(promised, "plain")
    promise(promised, "silent", alive_s=10.0)
    promise(promised, "heard", alive_s=10.0)
    promised.hear("heard", 9.0)
    promised.pass_time(15.0)
    assert on(promised) == [0, 200, 0]
    promised.pass_time(60.0)
    assert len(promised) == 0


def test_no_user_and_not_all_together_keep_more_than_their_share() -> None:
    promised = PromisedCreates()
    for n in range(creates.MOST_OF_USER + 5):
        promise(promised, f"{n}")
    assert len(promised) == creates.MOST_OF_USER
    for n in range(creates.MOST):
        promise(promised, f"of {n}", uid=n)
    assert len(promised) == creates.MOST
