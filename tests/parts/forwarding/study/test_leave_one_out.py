"""Estimation beside the simulated truth, in its short form; `make bench-forward` has the whole of it."""

from __future__ import annotations

import pytest

from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks
from tarazu.parts.forwarding.study.benchmarks import measure, one
from tarazu.parts.forwarding.study.leave_one_out import (
    applications,
    grid,
    judge,
    study,
    summary,
    true_curves,
)
from tarazu.units import KIB, MIB
from tests.benchmarks.forwarding.estimation import MOST_ERROR, SHORT

STRIDED = BenchmarkPattern("ost", "write", "POSIX", "shared", "sequential", 64 * KIB, 4 * MIB, 8, 2)


def test_estimates_are_near_the_truth_and_nearer_than_the_nearest_benchmark() -> None:
    """Two numbers of resources, few processes, one repetition of each benchmark."""
    found = study(SHORT, jobs=1)
    assert len(found) == 5 and {j.made.family for j in found} == {"ior", "hacc", "checkpoint"}
    ours, theirs = summary([j.accuracy for j in found]), summary([j.plain for j in found])
    assert ours.mean_error <= 1.5 * MOST_ERROR and ours.mean_error < theirs.mean_error
    assert ours.as_good >= 0.8


def test_a_phases_own_benchmark_is_left_out() -> None:
    """They change nothing, whether they are there or not."""
    (made,) = (m for m in applications("ost", 5, processes=(4, 8)) if m.on_grid)
    true = true_curves([made], 1, True, (6,), jobs=1)[0]
    own = {step.what for step in made.steps}
    patterns = [
        p for p in grid("ost", (4, 8)) if any(_alike(p, o) for o in own if isinstance(o, BenchmarkPattern))
    ]
    measured = measure(patterns, (6,), 1, jobs=1)
    assert own <= {m.pattern for m in measured}
    whole = judge(made, true, true, Benchmarks(measured))
    without = judge(made, true, true, Benchmarks(m for m in measured if m.pattern not in own))
    assert whole.estimated == without.estimated


def _alike(one: BenchmarkPattern, other: BenchmarkPattern) -> bool:
    names = ("operation", "api", "sharing", "spatiality")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def test_a_measurement_is_the_same_every_time_and_repetitions_differ() -> None:
    assert one((STRIDED, 4, 0)) == one((STRIDED, 4, 0))
    assert one((STRIDED, 4, 0)).bytes_per_s != one((STRIDED, 4, 1)).bytes_per_s


@pytest.mark.parametrize("sharing", ["shared", "unique"])
def test_curves_have_the_shapes_that_the_model_says(sharing: str) -> None:
    """One file over more OSTs is faster; a file a process on more OSTs each disturbs the others."""
    of = BenchmarkPattern("ost", "write", "POSIX", sharing, "contiguous", MIB, 64 * MIB, 32, 8)  # type: ignore[arg-type]
    one_ost, eight = (one((of, n, 0)).bytes_per_s for n in (1, 8))
    assert eight > 4 * one_ost if sharing == "shared" else eight < 0.8 * one_ost
