"""Curves are told into families, each of which gets one function; the sets of curves, measured and generated."""

from __future__ import annotations

from collections import Counter
from statistics import median

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
from tarazu.units import KIB, MIB
from tests.parts.forwarding.strategies import applications, curves

OF_OSTS = regressions(curve_sets.generated("ost")[::10])


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
        assert len(made) == {"io-node": 189, "ost": 301}[kind]
        assert Counter(map(classify, made)) == curve_sets.SHARES[kind]
        assert {tuple(p.resources for p in c.points) for c in made} == {curve_sets.NUMBERS[kind]}
        assert {len(p.bytes_per_s) for c in made for p in c.points} == {5}

    def test_the_best_number_of_each_family_is_where_its_name_says(self, kind) -> None:
        families = regressions(curve_sets.generated(kind))
        assert set(families) == set(FAMILIES)
        best = {f: max(r.points, key=lambda p: p.median).resources for f, r in families.items()}
        assert (best["ascent"], best["descent"]) == (8, 1)
        assert 1 < best["peak"] < 8
        assert {p.median for p in families["neutral"].points} == {1.0}


def test_a_regression_goes_through_what_is_a_polynomial() -> None:
    line = [curve((n, scale * (1 + n)) for n in range(1, 9)) for scale in (1.0, 100.0)]
    made = regression(line)
    assert [p.median for p in made.points] == pytest.approx([(1 + n) / 9 for n in range(1, 9)])


@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=curves())
def test_any_curve_has_a_family_with_a_positive_function(shape: Curve) -> None:
    ((family, made),) = regressions([shape]).items()
    assert family == classify(shape)
    assert max(p.median for p in made.points) == pytest.approx(1)
    assert all(p.median > 0 for p in made.points)


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
    other = profile_level(application, {})
    assert other == application


def test_there_are_as_many_as_the_paper_says_each_once() -> None:
    curves = curve_sets.published()
    assert len({of.name for of in curves}) == len(curves) == 189
    for of in curves:
        assert tuple(p.resources for p in of.curve.points) == curve_sets.NUMBERS["io-node"]
        assert all(len(p.bytes_per_s) >= 4 for p in of.curve.points)
        assert of.nodes < of.processes and 32 * KIB <= of.request_bytes <= 8 * MIB
    assert sum(of.strided for of in curves) == 63 and not any(of.strided and not of.shared for of in curves)


def test_the_first_row_is_the_files() -> None:
    first = curve_sets.published()[0]
    assert first.name == "per-process-contiguous-32k-96p-8n"
    assert first.curve.points[1].bytes_per_s == (338.6e6, 411.3e6, 441.1e6, 451.5e6, 480.7e6)


def test_more_io_nodes_help_files_of_processes_and_hurt_most_shared_ones() -> None:
    """What is seen in the paper's figure 1: some rise, some fall, some both."""
    best = {of.name: max(of.curve.points, key=lambda p: p.median).resources for of in curve_sets.published()}
    assert all(best[of.name] == 8 for of in curve_sets.published() if not of.shared)
    assert median(best[of.name] for of in curve_sets.published() if of.shared) == 2
