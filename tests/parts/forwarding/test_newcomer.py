from __future__ import annotations

from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.joint.policy import count

AMONG = Resources("ost", 8, 100)
PEAK = curve([(1, 1.0), (2, 1.8), (4, 3.0), (8, 2.5)])
FLAT = curve([(1, 1.0)])


def app(cpu_s: float = 1000.0, of: Curve = PEAK, io: float = 100.0) -> Application:
    return Application("a", 4, of, cpu_s, io)


def test_alone_it_gets_its_best() -> None:
    assert count([], app(), AMONG) == 4


def test_the_more_run_the_fewer_it_gets() -> None:
    slight = curve([(n, n**0.2) for n in (1, 2, 4, 8)])
    other, new = app(100.0, FLAT), app(100.0, slight)
    counts = [count([(other, 1)] * number, new, AMONG) for number in (0, 4, 8, 24)]
    assert counts[0] == 8 and counts == sorted(counts, reverse=True) and counts[-1] < 4


def test_what_the_others_have_counts_and_not_what_a_policy_would_give_them() -> None:
    other, new = app(100.0, FLAT), app(100.0, curve([(n, n**0.2) for n in (1, 2, 4, 8)]))
    narrow, wide = (count([(other, has)] * 6, new, AMONG) for has in (1, 8))
    assert narrow != wide
    assert count([(other, 99)] * 6, new, AMONG) == wide


def test_others_that_are_always_in_the_way_leave_it_a_quarter_of_its_best() -> None:
    rising = curve([(n, n**0.9) for n in (1, 2, 4, 8)])
    wide = Application("huge", 1_000_000, FLAT, 0.0, 1e21)
    number = count([(wide, 8)] * 40, app(of=rising), AMONG)
    assert rising.bandwidth(number) >= rising.bandwidth(8) / 4
