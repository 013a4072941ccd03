"""Phases → benchmarks → the application's curve: the rules, what is interpolated, and how good a curve is."""

from __future__ import annotations

import math
from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement, estimate
from tarazu.parts.forwarding.estimate.wanted import processes_of, request_sizes, wanted
from tarazu.parts.forwarding.study.accuracy import accuracy
from tarazu.units import GIB, KIB, MIB
from tests.parts.forwarding.strategies import PHASE, phase

PATTERN = BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", 2 * MIB, 128 * MIB, 128, 16)


def pattern(**changes: object) -> BenchmarkPattern:
    return msgspec.structs.replace(PATTERN, **changes)


def measured(
    of: BenchmarkPattern, rates: dict[int, float], spread: tuple[float, ...] = (1.0,)
) -> list[Measurement]:
    return [
        Measurement(of, n, rate * factor, "test", "", f"{of} {n} {factor}")
        for n, rate in rates.items()
        for factor in spread
    ]


# Rules


def test_the_papers_phases_give_the_papers_benchmarks() -> None:
    """Tables 1, 4 and 2, 5: SINGLE-A, SINGLE-B, PERIODIC-A, PERIODIC-B; and HACC-IO's of table 7."""
    unique = {"sharing": "unique", "processes_per_file": 1}
    phases = {
        "single-a": (PHASE, 16, PATTERN),
        "single-b": (
            phase(**unique, files=512, rank_count=512, bytes=32 * GIB),
            64,
            pattern(sharing="unique", request_bytes=4 * MIB, process_bytes=64 * MIB, processes=512, nodes=64),
        ),
        "periodic-a": (
            phase(
                spatiality="sequential", processes_per_file=24, rank_count=24, bytes=3 * GIB, requests=6144
            ),
            24,
            pattern(spatiality="sequential", request_bytes=512 * KIB, processes=24, nodes=24),
        ),
        "periodic-b": (
            phase(**unique, files=24, rank_count=24, bytes=3 * GIB, requests=786432),
            24,
            pattern(sharing="unique", request_bytes=4 * KIB, processes=24, nodes=24),
        ),
    }
    for name, (of, nodes, expected) in phases.items():
        assert [w.pattern for w in wanted(of, nodes, "ost")] == [expected], name
    hacc = phase(**unique, files=64, rank_count=64, bytes=1853812736, requests=640)
    (found,) = wanted(hacc, 8, "ost")
    assert (found.pattern.request_bytes, found.pattern.process_bytes) == (2896582, 28965824)


@pytest.mark.parametrize(
    ("changes", "processes"),
    [
        ({}, 128),
        ({"files": 2}, 128),  # two shared files, one after the other
        ({"files": 8, "processes_per_file": 16}, 128),  # eight groups at once
        ({"sharing": "unique", "processes_per_file": 1, "files": 128}, 128),
        ({"sharing": "unique", "processes_per_file": 1, "files": 1280}, 128),  # ten files a rank
        ({"rank_count": 1, "files": 1, "processes_per_file": 1}, 1),
    ],
)
def test_processes(changes: dict[str, object], processes: int) -> None:
    assert processes_of(phase(**changes)) == processes


def test_what_is_not_known_is_taken_for_contiguous_of_mpi_io_and_for_gaps_of_posix() -> None:
    for api, spatiality in (("MPI-IO", "contiguous"), ("HDF5", "contiguous"), ("POSIX", "sequential")):
        (found,) = wanted(phase(spatiality="unknown", api=api), 16, "ost")
        assert found.pattern.spatiality == spatiality


SIZES = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), max_size=4)


@settings(max_examples=40)
@given(st.integers(1, 10**15), st.integers(1, 10**9), SIZES)
def test_sizes_of_requests_make_the_phases_bytes(
    moved: int, requests: int, sizes: list[tuple[int, int]]
) -> None:
    of = phase(bytes=moved, requests=requests, request_sizes=tuple(sizes))
    parts = request_sizes(of)
    assert sum(part for _, part in parts) == pytest.approx(moved)
    assert all(size > 0 and part > 0 for size, part in parts)
    assert sum(w.bytes for w in wanted(of, 4, "ost")) == pytest.approx(moved)


def test_hacc_is_not_all_requests_of_the_mean_size() -> None:
    """Paper E, section 5: nine arrays of 3.6 MB together, and one header of 24 MiB."""
    of = phase(
        bytes=64 * (3_800_000 + 24 * MIB), requests=640, request_sizes=((400_000, 448), (24 * MIB, 64))
    )
    parts = dict(request_sizes(of))
    assert parts[24 * MIB] == 64 * 24 * MIB and parts[400_000] == 448 * 400_000
    (rest,) = set(parts) - {24 * MIB, 400_000}
    assert rest == pytest.approx(64 * 1_000_000 / 128)


# Interpolation

GRID = [
    pattern(request_bytes=q, process_bytes=b, processes=p, nodes=p // 8)
    for q, b, p in product((64 * KIB, MIB, 16 * MIB), (32 * MIB, 512 * MIB), (32, 256))
]


def law(of: BenchmarkPattern, n: int) -> float:
    """A bandwidth that goes by powers."""
    return 1e6 * n**0.7 * of.request_bytes**0.2 * of.process_bytes**0.1 * of.processes**0.5 * of.nodes**-0.2


def by_law(patterns: list[BenchmarkPattern], spread: tuple[float, ...] = (1.0,)) -> Benchmarks:
    return Benchmarks(m for p in patterns for m in measured(p, {n: law(p, n) for n in (1, 2, 4, 8)}, spread))


def test_the_same_benchmark_is_taken_as_it_is() -> None:
    found = estimate([PHASE], by_law([*GRID, PATTERN]), 16, "ost")
    assert found and found.covered == 1.0
    for n in (1, 2, 4, 8):
        assert found.curve.bandwidth(n) == pytest.approx(law(PATTERN, n), rel=0.01)
    ((of, known),) = found.parts
    assert of == PATTERN and known and known.distance == 0
    assert known.matches[0].pattern == PATTERN and known.matches[0].weight > 0.95


def test_between_benchmarks_a_law_of_powers_is_followed() -> None:
    found = estimate([PHASE], by_law(GRID), 16, "ost")
    assert found
    for n in (1, 2, 4, 8):
        assert found.curve.bandwidth(n) == pytest.approx(law(PATTERN, n), rel=0.05)
    ((_, known),) = found.parts
    assert known and sum(m.weight for m in known.matches) == pytest.approx(1.0)


@settings(max_examples=30)
@given(st.integers(12, 24), st.integers(24, 30), st.integers(2, 9))
def test_an_estimate_is_finite_and_has_its_median_in_the_middle(request: int, moved: int, ranks: int) -> None:
    of = phase(
        rank_count=2**ranks,
        processes_per_file=2**ranks,
        bytes=2 ** (moved + ranks),
        requests=2 ** (moved + ranks - request) or 1,
    )
    found = estimate([of], by_law(GRID, (0.9, 1.0, 1.2)), max(1, 2**ranks // 8), "ost")
    assert found
    for point in found.curve.points:
        assert all(0 < v < math.inf for v in point.bytes_per_s)
        assert list(point.bytes_per_s) == sorted(point.bytes_per_s)


def test_seconds_of_phases_are_added() -> None:
    fast, slow = pattern(operation="read"), pattern()
    benchmarks = Benchmarks([*measured(fast, {1: 4e9, 2: 4e9}), *measured(slow, {1: 1e9, 2: 2e9})])
    phases = [PHASE, phase(operation="read", bytes=48 * GIB, requests=3 * 8192, rank_count=128)]
    benchmarks = benchmarks.with_(
        measured(pattern(operation="read", process_bytes=384 * MIB), {1: 4e9, 2: 4e9})
    )
    found = estimate(phases, benchmarks, 16, "ost")
    assert found
    for n, rate in ((1, 1e9), (2, 2e9)):
        seconds = 16 * GIB / rate + 48 * GIB / 4e9
        assert found.curve.bandwidth(n) == pytest.approx(64 * GIB / seconds, rel=1e-3)


def test_the_spread_is_that_of_the_repetitions() -> None:
    """Of the phase's own benchmark; where only another one is known, it is larger."""
    repeated = [0.8 + n / 100 for n in range(41)]
    own = estimate([PHASE], Benchmarks(measured(PATTERN, {1: 1e9}, tuple(repeated))), 16, "ost")
    near = pattern(process_bytes=1024 * MIB)
    other = estimate([PHASE], Benchmarks(measured(near, {1: 1e9}, tuple(repeated))), 16, "ost")
    assert own and other
    (values,), (wider,) = ([p.bytes_per_s for p in e.curve.points] for e in (own, other))
    assert values[0] == pytest.approx(0.82e9, rel=0.03) and values[-1] == pytest.approx(1.18e9, rel=0.03)
    assert own.curve.points[0].median == pytest.approx(1e9, rel=0.001)
    assert wider[0] < 0.8 * values[0] and wider[-1] > 1.25 * values[-1]


@pytest.mark.parametrize(
    ("changes", "stand_in"),
    [
        ({"api": "MPI-IO", "spatiality": "unknown"}, "POSIX for MPI-IO"),
        ({"api": "STDIO"}, "POSIX for STDIO"),
        ({"api": "HDF5", "spatiality": "collective"}, "POSIX for HDF5, contiguous for collective"),
        ({"spatiality": "sequential"}, "contiguous for sequential"),
        ({"spatiality": "random"}, None),
        ({"operation": "read"}, None),
        ({"sharing": "unique", "files": 128, "processes_per_file": 1}, None),
    ],
)
def test_what_stands_in_is_said(changes: dict[str, object], stand_in: str | None) -> None:
    found = estimate([phase(**changes)], by_law([PATTERN]), 16, "ost")
    if stand_in is None:
        assert found is None
    else:
        assert found and found.parts[0][1] and found.parts[0][1].stand_in == stand_in


def test_half_of_the_bytes_must_be_like_a_benchmark() -> None:
    read = phase(operation="read", bytes=PHASE.bytes + 1)
    assert estimate([PHASE, read], by_law([PATTERN]), 16, "ost") is None
    found = estimate(
        [PHASE, msgspec.structs.replace(read, bytes=PHASE.bytes // 3)], by_law([PATTERN]), 16, "ost"
    )
    assert found and found.covered == pytest.approx(0.75)
    assert [known is None for _, known in found.parts] == [False, True]


def test_no_estimate_without_phases_benchmarks_or_of_another_kind() -> None:
    assert estimate([], by_law(GRID), 16, "ost") is None
    assert estimate([phase(bytes=0)], by_law(GRID), 16, "ost") is None
    assert estimate([PHASE], Benchmarks(), 16, "ost") is None
    assert estimate([PHASE], by_law(GRID), 16, "io-node") is None


def test_what_is_too_far_away_says_nothing() -> None:
    far = pattern(request_bytes=64, process_bytes=4096)
    assert estimate([PHASE], by_law([far]), 16, "ost") is None


def test_numbers_that_only_some_benchmarks_have() -> None:
    """Between two numbers of its own a benchmark is a straight line; beyond them it is not asked."""
    near = pattern(process_bytes=64 * MIB)
    benchmarks = Benchmarks([*measured(PATTERN, {1: 1e9, 3: 3e9}), *measured(near, {1: 1e9, 2: 2e9, 8: 8e9})])
    found = estimate([PHASE], benchmarks, 16, "ost")
    assert found and [p.resources for p in found.curve.points] == [1, 2, 3, 8]
    assert found.curve.bandwidth(2) == pytest.approx(2e9, rel=0.02)


# Measures


def true_curve(*medians: float) -> Curve:
    return curve((n, m) for n, m in enumerate(medians, 1))


def test_measures_of_a_curve() -> None:
    true = true_curve(10, 20, 40, 30)
    same = accuracy(true, true)
    assert (same.error, same.best, same.found, same.regret) == (0.0, 3, 3, 0.0)
    turned = accuracy(true_curve(40, 30, 20, 10), true)
    assert turned.found == 1 and turned.regret == 0.75
    level = accuracy(true_curve(25, 25, 25, 25), true)
    assert level.found == 1 and not level.exact
    half = accuracy(true_curve(5, 10, 20, 15), true)
    assert half.error == 0.5 and half.exact and half.as_good


def test_a_curve_may_find_the_best_and_still_mislead_where_fewer_are_to_be_had() -> None:
    found = accuracy(true_curve(20, 10, 40), true_curve(10, 20, 40))
    assert found.exact and found.regret == 0.0 and found.worst_regret == 0.5
