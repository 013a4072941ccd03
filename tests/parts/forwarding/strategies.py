"""A phase, applications and curves of every kind for property tests, and paper A's equations as they stand there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec
from hypothesis import strategies as st

from tarazu.parts.forwarding.application import Application, Kind, Resources, io_s
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.estimate import BenchmarkPattern
from tarazu.trace.phases.phase import Api, Operation, Phase, Sharing
from tarazu.units import GIB

BANDWIDTHS = st.one_of(st.sampled_from((1.0, 2.0, 3.0, 1e9, 2e9)), st.floats(1e-3, 1e12))

PHASE = Phase(
    start_s=0.0,
    end_s=10.0,
    operation="write",
    ranks=None,
    rank_count=128,
    bytes=16 * GIB,
    io_s=8.0,
    api="POSIX",
    requests=8192,
    spatiality="contiguous",
    sharing="shared",
    files=1,
    processes_per_file=128,
)
"""SINGLE-A of paper E, table 2."""


def phase(**changes: object) -> Phase:
    return msgspec.structs.replace(PHASE, **changes)


PATTERNS = st.builds(
    BenchmarkPattern,
    st.sampled_from(get_args(Kind)),
    st.sampled_from(get_args(Operation)),
    st.sampled_from(get_args(Api)),
    st.sampled_from(get_args(Sharing)),
    st.sampled_from(("contiguous", "sequential", "random", "collective")),
    st.integers(1, 2**34),
    st.integers(1, 2**50),
    st.integers(1, 10**6),
    st.integers(1, 10**5),
)


@st.composite
def curves(draw: st.DrawFn, most: int = 12) -> Curve:
    """One to six points anywhere in 1 … most, one to three repetitions, equal values often."""
    at = draw(st.sets(st.integers(1, most), min_size=1, max_size=6))
    return curve((n, b) for n in sorted(at) for b in draw(st.lists(BANDWIDTHS, min_size=1, max_size=3)))


@st.composite
def applications(draw: st.DrawFn) -> Application:
    return Application(
        draw(st.sampled_from(("a", "b", "ü"))),
        draw(st.sampled_from((1, 2, 48, 5000))),
        draw(curves()),
        draw(st.one_of(st.sampled_from((0.0, 1.0, 5000.0)), st.floats(0, 1e6))),
        draw(st.one_of(st.sampled_from((0.0, 1.0, 1e9, 5e12)), st.floats(0, 1e15))),
        draw(st.integers(1, 20)),
    )


@st.composite
def systems(draw: st.DrawFn, largest: int = 12) -> tuple[list[Application], Resources]:
    """One to 15 applications on 1 … largest resources: more applications than resources as often as fewer."""
    count = draw(st.integers(1, largest))
    several = draw(st.lists(applications(), min_size=1, max_size=15))
    return several, Resources(draw(st.sampled_from(("io-node", "ost"))), count, 480)


def n_perf(application: Application, most: int) -> int:
    """Paper A, equation 1."""
    return max(range(1, most + 1), key=application.curve.bandwidth)


def n_sys(application: Application, most: int) -> int:
    """Equation 2."""
    return min(range(1, most + 1), key=lambda n: io_stress(application, n))


def io_stress(application: Application, resources: int) -> float:
    busy = io_s(application, resources)
    whole = application.cpu_s + busy
    return resources * busy / whole if whole else 0.0


def io_load(several: Sequence[Application], counts: Sequence[int], resources: Resources) -> float:
    """Equation 3."""
    return sum(map(io_stress, several, counts)) / resources.count


def cpu_load(application: Application, resources: int) -> float:
    whole = application.cpu_s + io_s(application, resources)
    return application.nodes * application.cpu_s / whole if whole else 0.0
