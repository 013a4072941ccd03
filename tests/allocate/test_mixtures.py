"""A short form of `make bench-mixtures`: mixtures of files on OSTs of unequal speeds."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.allocate import exact, packing
from tarazu.allocate.filling import fill
from tarazu.sim.allocation import policies
from tests.benchmarks.allocate.mixtures import reached, unequal


@pytest.mark.parametrize("seed", (1, 9, 12, 23, 25, 28, 36, 47, 48, 52, 58))
def test_no_slow_ost_is_waited_for_where_other_sizes_would_fit_on_it(seed: int) -> None:
    """Moves and swaps of one or two objects were stuck at up to 1.13 times the time that is possible."""
    seconds, bound_s, _ = reached(*unequal(seed))
    assert bound_s * (1 - 1e-9) <= seconds <= 1.011 * bound_s


def test_fillings_have_a_place_for_every_object_or_none_are_given() -> None:
    sizes, counts = np.array([3, 5]), np.array([14, 7])
    kinds = [(5, np.array([[2, 1], [0, 2], [4, 0]])), (3, np.array([[1, 1], [2, 0], [0, 1]]))]
    uses = fill(sizes, counts, kinds)
    assert uses is not None and [sum(of_kind) for of_kind in uses] == [5, 3]
    held = sum(np.array(of_kind) @ of[1] for of_kind, of in zip(uses, kinds))
    assert (held >= counts).all()
    assert fill(sizes, counts + 9, kinds) is None


def test_very_many_files_are_not_dealt_one_by_one(monkeypatch) -> None:
    """100,000 files on as many OSTs of unequal speed took more than ten minutes."""
    asked: list[object] = []
    monkeypatch.setattr(packing, "pack", lambda *of: asked.append(of) or (0.0, None))
    for most, times in ((10**9, 1), (1000, 0)):
        asked.clear()
        monkeypatch.setattr(exact, "MOST_DEALT", most)
        policies.make("tarazu", seed=1).allocate(*unequal(9))
        assert len(asked) == times


def test_the_same_mixture_is_placed_the_same_way_again() -> None:
    view, requests = unequal(9)
    first, again = (policies.make("tarazu", seed=1).allocate(view, requests).files for _ in range(2))
    assert first == again
    assert all(len(set(osts)) == len(osts) for file in first for osts in file.osts)
