"""Mixtures of jobs under `layout.stripe_count = curve` and under `auto`."""

from __future__ import annotations

from tarazu.parts.forwarding.study.stripes import JOBS, LOADS, OSTS, mixtures


def test_a_mixture_under_curve_is_no_slower_than_under_auto() -> None:
    found = list(mixtures(LOADS[::2], each=1))
    assert [mixture.load for mixture in found] == list(LOADS[::2])
    for mixture in found:
        assert len(mixture.auto) == len(mixture.first) == len(mixture.curve) == JOBS
        assert all(1 <= count <= OSTS for count in (*mixture.auto, *mixture.first, *mixture.curve))
        assert mixture.ratio <= 1 and mixture.first_ratio <= 1
    assert len({mixture.curve for mixture in found}) > 1, "by how loaded the OSTs are"
    assert found[0] == next(mixtures(LOADS[::2], each=1))
