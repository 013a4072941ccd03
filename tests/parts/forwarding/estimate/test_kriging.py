"""What is learned of how benchmarks differ, and that held-out ones are estimated better with it."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, estimate
from tarazu.parts.forwarding.estimate.kriging import USUAL, Group, fit, kriging, parts
from tarazu.parts.forwarding.estimate.match import Index
from tarazu.units import MIB
from tests.parts.forwarding.estimate.test_estimate import phase

RNG = np.random.default_rng(3)
PLACES = RNG.uniform(0, 6, (40, 4))


def waves(which: int) -> Group:
    """Levels that go up and down along one of the numbers, the others being of no matter; one shape for all."""
    level = np.sin(1.5 * PLACES[:, which])
    shape = np.array([-1.0, 0.0, 0.5, 0.5])
    logs = 30 + level[:, None] + shape + 0.05 * RNG.standard_normal((40, 4))
    return Group(PLACES, logs, np.full(40, 0.05**2))


@pytest.mark.parametrize("which", range(4))
def test_the_number_that_matters_has_the_shortest_reach(which: int) -> None:
    found = fit([waves(which)])
    others = [reach for at, reach in enumerate(found.reach) if at != which]
    assert 2 * found.reach[which] < min(others)
    assert found.shape < USUAL.shape < found.departure


def test_of_a_handful_nothing_is_learned() -> None:
    one = waves(0)
    assert fit([]) == fit([Group(*(part[:1] for part in one))]) == USUAL
    few = fit([Group(*(part[:2] for part in one))])
    assert all(0.2 < a / b < 5 for a, b in zip(few.reach, USUAL.reach, strict=True))


def test_far_from_everything_the_mean_of_all_is_taken() -> None:
    away = np.full((3, 4), 100.0) + np.array([[0.0] * 4, [30.0] * 4, [60.0] * 4])
    weight, variance = kriging(away, np.full(3, 1e-4), 0.5, 0.0, USUAL.reach)
    assert weight == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert variance == pytest.approx(0.25 * 4 / 3, rel=1e-2)


def test_level_and_shape_of_benchmarks_that_know_other_numbers() -> None:
    """Both rise by 1 a step; the second knows the last two numbers alone, and lies 5 higher."""
    logs = np.array([[0.0, 1.0, 2.0], [np.nan, 6.0, 7.0]])
    level, shape = parts(np.nan_to_num(logs, nan=99.0), ~np.isnan(logs), (1, 2, 4))
    assert level == pytest.approx([1.0, 6.0], abs=1e-3)
    assert shape[0] == pytest.approx([-1, 0, 1], abs=1e-3) and shape[1, 1:] == pytest.approx([0, 1], abs=1e-3)


def _with(request_bytes: int, *resources: int) -> list[Measurement]:
    """Alike but for the size of requests; each resource adds 1 GB/s."""
    pattern = BenchmarkPattern(
        "io-node", "write", "POSIX", "shared", "contiguous", request_bytes, 64 * MIB, 8, 2
    )
    return [
        Measurement(pattern, n, 1e9 * n, "test", "", f"{request_bytes} {n} {r}")
        for n in resources
        for r in range(3)
    ]


def _between(measurements: list[Measurement]) -> dict[int, float] | None:
    pattern = _with(MIB, 1)[0].pattern
    found = Index(Benchmarks(measurements)).find(pattern, np.full((2, 3), 0.5))
    return dict(zip(found.numbers, found.bytes_per_s.tolist())) if found else None


def test_benchmarks_that_share_no_number_are_not_taken_for_equally_high() -> None:
    found = _between(_with(MIB // 4, 1, 2) + _with(4 * MIB, 16, 32))
    assert found == pytest.approx({n: 1e9 * n for n in (1, 2, 16, 32)}, rel=0.01)


def test_one_number_each_says_nothing_of_other_numbers() -> None:
    assert _between(_with(MIB // 4, 1) + _with(4 * MIB, 8)) is None
    assert _between(_with(MIB // 4, 4) + _with(4 * MIB, 4)) == pytest.approx({4: 4e9})


def test_noise_of_few_repetitions_is_mostly_that_of_all() -> None:
    """One benchmark whose two repetitions agree by chance is not taken for exact."""
    patterns = [
        BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", 2**k * MIB, 64 * MIB, 8, 2)
        for k in range(6)
    ]
    spread = [(1.0, 1.0), *([(0.8, 1.25)] * 5)]
    benchmarks = Benchmarks(
        Measurement(p, n, 1e9 * factor, "test", "", f"{p} {n} {r}")
        for p, factors in zip(patterns, spread, strict=True)
        for n in (1, 2)
        for r, factor in enumerate(factors)
    )
    noise = Index(benchmarks).noise
    assert 0.3 < noise[patterns[0]] / noise[patterns[1]] < 1


def test_a_held_out_benchmark_is_estimated_with_what_matters() -> None:
    """Bandwidth goes by processes in waves and not by the size of requests: the nearest in processes tells it."""
    patterns = [
        BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", request, 64 * MIB, processes, 1)
        for request in (MIB, 4 * MIB, 16 * MIB)
        for processes in (4, 8, 16, 32, 64, 128)
    ]

    def rate(of: BenchmarkPattern, n: int) -> float:
        return 1e9 * (4.0 if of.processes in (8, 32, 128) else 1.0) * n**0.5

    def measured(*left: BenchmarkPattern) -> Benchmarks:
        return Benchmarks(
            Measurement(p, n, rate(p, n) * factor, "test", "", f"{p} {n} {factor}")
            for p in patterns
            if p not in left
            for n in (1, 4)
            for factor in (0.97, 1.0, 1.03)
        )

    for left in (patterns[8], patterns[9]):
        of = phase(
            bytes=left.bytes,
            requests=left.bytes // left.request_bytes,
            rank_count=left.processes,
            processes_per_file=left.processes,
        )
        found = estimate([of], measured(left), 1, "ost")
        assert found
        for n in (1, 4):
            assert found.curve.bandwidth(n) == pytest.approx(rate(left, n), rel=0.1)
