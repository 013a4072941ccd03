"""What is expected of pairs for a client, beside workloads that were measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.council.detect import clients as module
from tarazu.parts.council.detect.clients import APART, ClientGain, expected, known
from tarazu.parts.council.observation import Direction, Observation

VALUES = ("1024x8", "256x8", "16x128", "2x32")
MIB = 1 << 20


def seen(read: int, write: int, call: int, rpc: float, in_flight: float) -> Observation:
    return Observation(
        1.0, Direction(read, max(1, read // call)), Direction(write, max(1, write // call)), in_flight, rpc
    )


def test_random_reads_that_wait_for_one_another_gain_by_small_rpcs() -> None:
    gains = expected(seen(174 * MIB, 0, MIB, MIB, 1.3), "1024x8", VALUES)
    assert gains is not None and gains[0] == ClientGain(0.0, 0.0)
    assert gains[2].mean > 0.1 > gains[1].mean
    assert gains[3] == ClientGain(), "of less than 64 KiB nothing is expected"
    from_smaller = expected(seen(174 * MIB, 0, MIB, MIB, 1.3), "256x8", VALUES)
    assert from_smaller is not None and from_smaller[1] == ClientGain(0.0, 0.0)


def test_each_known_workload_is_most_like_itself() -> None:
    of = known()
    assert len(of.workloads) == 12
    for number, workload in enumerate(of.workloads):
        at = workload.at["1024x8"]
        size = 10_000 * MIB
        moved = (size, 0) if workload.operation == "read" else (0, size)
        near = of.near(seen(*moved, int(workload.call_kib * 1024), at.rpc_kib * 1024, at.in_flight), "1024x8")
        assert near[number] == max(near) > 0.9


@pytest.mark.parametrize(
    ("pair", "observation"),
    [
        ("64x32", seen(MIB, 0, MIB, MIB, 1.0)),
        ("2000000", seen(MIB, 0, MIB, MIB, 1.0)),
        ("1024x8", seen(MIB, 0, MIB, 0.0, 1.0)),
        ("1024x8", seen(MIB, 0, MIB, MIB, 0.0)),
    ],
    ids=["a pair that no client starts with", "no pair", "RPCs unknown", "in flight unknown"],
)
def test_of_what_is_not_known_nothing_is_said(pair: str, observation: Observation) -> None:
    assert expected(observation, pair, VALUES) is None


@given(
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 40),
    st.integers(1, 1 << 30),
    st.floats(0, 1e12),
    st.floats(0, 1e9),
)
def test_what_is_unlike_all_is_expected_to_gain_nothing(
    read: int, write: int, call: int, rpc: float, in_flight: float
) -> None:
    gains = expected(seen(read, write, call, rpc, in_flight), "1024x8", VALUES)
    for gain in gains or ():
        assert abs(gain.mean) < 1.0 and 0.0 <= gain.deviation < 1.0
    far = expected(seen(MIB, 0, 1 << 30, 1e12, 1e9), "1024x8", VALUES)
    assert far is None or all(
        abs(gain.mean) < 0.01 and math.isclose(gain.deviation, APART, rel_tol=0.01) for gain in far[1:3]
    )


def test_a_thousand_clients_cost_no_thousand_searches_for_the_nearest_pair() -> None:
    """Each of them is asked about once a second, all about the same values."""
    one = seen(10**8, 0, 1 << 20, 1 << 20, 1.3)
    for _ in range(2):
        before = module._nearest.cache_info().misses
        expected(one, "1024x8", ["1024x8", "16x128", "8x32"])
    assert module._nearest.cache_info().misses == before
