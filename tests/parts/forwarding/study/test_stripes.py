"""Mixtures of jobs under `layout.stripe_count = curve` and under `auto`."""

from __future__ import annotations

import pytest

from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.study.stripes import AMONG, JOBS, LOADS, OSTS, count, mixtures

PEAK = curve([(1, 1.0), (2, 1.8), (4, 3.0), (8, 2.5)])


def app(of: Curve = PEAK) -> Application:
    return Application("a", 4, of, 1000.0, 100.0)


def test_a_mixture_under_curve_is_no_slower_than_under_auto() -> None:
    found = list(mixtures("joint", LOADS[::2], each=1))
    assert [mixture.load for mixture in found] == list(LOADS[::2])
    for mixture in found:
        assert len(mixture.auto) == len(mixture.first) == len(mixture.curve) == JOBS
        assert all(1 <= count <= OSTS for count in (*mixture.auto, *mixture.first, *mixture.curve))
        assert mixture.ratio <= 1 and mixture.first_ratio <= 1
    assert len({mixture.curve for mixture in found}) > 1, "by how loaded the OSTs are"
    assert found[0] == next(mixtures("joint", LOADS[::2], each=1))


@pytest.mark.parametrize("policy", ["joint", "ta-gc", "bba-gnc", "mckp"])
def test_alone_it_gets_its_best(policy: str) -> None:
    assert count(policy, [], app(), AMONG) == 4


@pytest.mark.parametrize("policy", ["joint", "ta-gc", "nsysa-gnc", "static-gc"])
def test_others_that_are_always_in_the_way_leave_it_a_quarter_of_its_best(policy: str) -> None:
    rising = curve([(n, n**0.9) for n in (1, 2, 4, 8)])
    wide = Application("huge", 1_000_000, curve([(1, 1.0)]), 0.0, 1e21)
    number = count(policy, [(wide, 8)] * 40, app(rising), AMONG)
    assert rising.bandwidth(number) >= rising.bandwidth(8) / 4


def test_a_policy_that_there_is_not() -> None:
    with pytest.raises(BadInput):
        count("no-such", [], app(), AMONG)
