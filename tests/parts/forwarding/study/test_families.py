"""Curves are told into families, and each family gets one function."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.study import curve_sets
from tarazu.parts.forwarding.study.families import (
    FAMILIES,
    classify,
    profile_level,
    regression,
    regressions,
    spread,
)
from tests.parts.forwarding.strategies import applications, curves

OF_OSTS = regressions(c.curve for c in curve_sets.generated("ost").curves[::10])


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ((1, 2, 3, 4), "ascent"),
        ((4, 3, 2, 1), "descent"),
        ((1, 3, 4, 2), "peak"),
        ((1, 1.05, 0.98, 1.02), "neutral"),
        ((1, 0.3, 0.3, 1), "neutral"),
        ((1,), "neutral"),
        ((1, 2, 3, 2.8), "ascent"),
    ],
)
def test_by_shape(values: tuple[float, ...], family: str) -> None:
    assert classify(curve((2**i, v) for i, v in enumerate(values))) == family


def test_what_the_repetitions_do_not_tell_apart_is_no_shape() -> None:
    calm = curve((n, v * off) for n, v in ((1, 1.0), (8, 1.3)) for off in (0.98, 1.0, 1.02))
    wild = curve((n, v * off) for n, v in ((1, 1.0), (8, 1.3)) for off in (0.5, 1.0, 1.5))
    assert (classify(calm), classify(wild)) == ("ascent", "neutral")
    assert spread(calm) < 0.1 < spread(wild)
    assert spread(curve([(1, 1.0), (2, 2.0)])) == 0


@pytest.mark.parametrize("kind", ["io-node", "ost"])
class TestGenerated:
    def test_as_many_as_the_paper_has_in_the_stated_proportions(self, kind) -> None:
        made = curve_sets.generated(kind)
        assert len(made.curves) == {"io-node": 189, "ost": 301}[kind]
        assert Counter(classify(c.curve) for c in made.curves) == curve_sets.SHARES[kind]
        assert {tuple(p.resources for p in c.curve.points) for c in made.curves} == {curve_sets.NUMBERS[kind]}
        assert {len(p.bytes_per_s) for c in made.curves for p in c.curve.points} == {5}
        assert len({c.application for c in made.curves}) == len(made.curves)

    def test_of_one_seed_the_same(self, kind) -> None:
        assert curve_sets.generated(kind) == curve_sets.generated(kind)
        assert curve_sets.generated(kind) != curve_sets.generated(kind, seed=1)

    def test_says_that_they_are_generated(self, kind) -> None:
        assert "generated" in curve_sets.generated(kind).note

    def test_the_best_number_of_each_family_is_where_its_name_says(self, kind) -> None:
        families = regressions(c.curve for c in curve_sets.generated(kind).curves)
        assert set(families) == set(FAMILIES)
        best = {f: max(r.curve.points, key=lambda p: p.median).resources for f, r in families.items()}
        assert (best["ascent"], best["descent"]) == (8, 1)
        assert 1 < best["peak"] < 8
        assert {p.median for p in families["neutral"].curve.points} == {1.0}


def test_a_regression_goes_through_what_is_a_polynomial() -> None:
    line = [curve((n, scale * (1 + n)) for n in range(1, 9)) for scale in (1.0, 100.0)]
    made = regression("ascent", line)
    assert [p.median for p in made.curve.points] == pytest.approx([(1 + n) / 9 for n in range(1, 9)])
    assert made.coefficients == pytest.approx((1 / 9, 1 / 9), abs=1e-9)
    assert (made.members, made.curve.origin) == (2, "family")


@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=curves())
def test_any_curve_has_a_family_with_a_positive_function(shape: Curve) -> None:
    (made,) = regressions([shape]).values()
    assert made.family == classify(shape)
    assert max(p.median for p in made.curve.points) == pytest.approx(1)
    assert all(p.median > 0 for p in made.curve.points)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(application=applications())
def test_profile_level_keeps_what_is_known(application: Application) -> None:
    known = profile_level(application, OF_OSTS)
    assert (known.cpu_s, known.io_bytes, known.nodes) == (
        application.cpu_s,
        application.io_bytes,
        application.nodes,
    )
    best = [max(p.median for p in a.curve.points) for a in (known, application)]
    assert best[0] == pytest.approx(best[1])
    assert known.curve.origin == "family"
    other = profile_level(application, {})
    assert other == application
