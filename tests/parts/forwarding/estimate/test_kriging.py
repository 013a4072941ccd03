"""Between benchmarks: what others of other numbers say, and that held-out ones are estimated by what matters."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, estimate
from tarazu.parts.forwarding.estimate.match import Index
from tarazu.units import MIB
from tests.parts.forwarding.strategies import phase


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
