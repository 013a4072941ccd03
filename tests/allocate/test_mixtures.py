"""A short form of `make bench-mixtures`: mixtures of files on OSTs of unequal speeds."""

from __future__ import annotations

import pytest

from tarazu.sim.allocation import policies
from tests.benchmarks.allocate.mixtures import reached, unequal


@pytest.mark.parametrize("seed", (1, 9, 12, 23, 25, 28, 47, 48))
def test_no_slow_ost_is_waited_for_where_other_sizes_would_fit_on_it(seed: int) -> None:
    """Moves and swaps of one or two objects were stuck at up to 1.13 times the time that is possible."""
    seconds, bound_s, _ = reached(*unequal(seed))
    assert bound_s * (1 - 1e-9) <= seconds <= 1.011 * bound_s


def test_the_same_mixture_is_placed_the_same_way_again() -> None:
    view, requests = unequal(9)
    first, again = (policies.make("tarazu", seed=1).allocate(view, requests).files for _ in range(2))
    assert first == again
    assert all(len(set(osts)) == len(osts) for file in first for osts in file.osts)
