from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tarazu.parts.bursts.measures import applications, day
from tarazu.parts.bursts.measures.applications import ApplicationCharacter, Trait, divergence, trait
from tarazu.parts.bursts.measures.characteristics import of_nodes
from tarazu.parts.bursts.measures.day import Share
from tarazu.units import GIB


def application(*jobs: list[int], network: int | None = None) -> ApplicationCharacter | None:
    moved = [np.array(each) * GIB for each in jobs]
    return applications.of_jobs([of_nodes(each, network=network) for each in moved], moved)


def test_jobs_that_are_alike() -> None:
    found = application(*[[30, 10]] * 6, network=GIB)
    assert found is not None
    assert (found.divergence, found.divergent, found.shares) == (0, False, (0.75, 0.25))
    assert found.optimizable
    assert found.intensive.consistency == 1


def test_jobs_that_put_it_elsewhere_each_time() -> None:
    found = application(*[[20, 0], [0, 20]] * 3)
    assert found is not None
    assert found.divergence == pytest.approx(9 * sqrt(2) / 15)  # 9 of 15 pairs are as far apart as can be
    assert found.divergent
    assert found.shares is None


def test_where_communication_is_not_known_it_is_taken_for_little() -> None:
    assert (found := application(*[[10, 10]] * 6)) and found.optimizable
    assert (found := application(*[[10, 10]] * 6, network=50 * GIB)) and not found.optimizable


def test_jobs_that_moved_nothing_have_no_distribution() -> None:
    found = application([0, 0], *[[30, 10]] * 5)
    assert found is not None
    assert (found.divergence, found.intensive) == (0, Trait(5 / 6, 6))
    nothing = application(*[[0, 0]] * 6)
    assert nothing is not None
    assert (nothing.divergence, nothing.shares) == (0, None)


def test_degree_of_consistency() -> None:
    assert trait([True, True, True, False]) == Trait(0.75, 4)
    assert Trait(0.25, 4).consistency == 0.75
    assert trait([None, True, None]) == Trait(1, 1)
    assert trait([None]) is None


@given(arrays(float, st.tuples(st.integers(2, 8), st.integers(1, 6)), elements=st.floats(0.01, 1)))
def test_divergence_is_the_mean_distance_of_pairs(rows: np.ndarray) -> None:
    rows = rows / rows.sum(axis=1, keepdims=True)
    expected = np.mean([np.linalg.norm(a - b) for a, b in combinations(rows, 2)])
    assert divergence(rows) == pytest.approx(expected, abs=1e-6)


def test_shares_of_applications() -> None:
    alike, unlike, single = (
        application(*[[10, 10]] * 6),
        application(*[[20, 0], [0, 20]] * 3),
        application(*[[9]] * 6),
    )
    assert alike and unlike and single
    found = day.of_applications([alike, unlike, single])
    assert (found.applications, found.divergent) == (2, Share(1, 2))
    assert found.consistency_intensive == 1
