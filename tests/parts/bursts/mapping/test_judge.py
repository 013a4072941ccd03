"""What a mapping gives on traffic, and the history that is learned from it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.mapping import history
from tarazu.parts.bursts.mapping.judge import judge
from tarazu.parts.bursts.mapping.simple import contiguous, round_robin
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.bursts.traffic.traffic import Traffic
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(400, 20)
BURSTS = st.lists(st.dictionaries(st.integers(0, 399), st.integers(1, 10**12), max_size=30), max_size=6)


def test_a_cabinet_that_bursts_alone() -> None:
    """By hand: 20 nodes alike; all on one of 20 I/O nodes, or one on each; the busiest two of 20 count."""
    chunks = [traffic(MACHINE, [dict.fromkeys(range(20), 100), {7: 10, 8: 10}])]
    found = judge({"contiguous": contiguous(400, 20), "round robin": round_robin(400, 20)}, chunks, MACHINE)
    assert found["contiguous"].busiest_share == 1.0
    assert found["round robin"].busiest_share == pytest.approx((0.1 + 1.0) / 2)
    assert found["contiguous"].io_nodes_of_busiest == 1.0
    assert found["round robin"].io_nodes_of_busiest == pytest.approx((4 + 2) / 2), "1 % of 400 nodes are 4"
    assert found["round robin"].busiest_share_of_bytes == pytest.approx((0.1 * 2000 + 20) / 2020)
    assert found["round robin"].intervals == 2


@settings(max_examples=12)
@given(BURSTS, st.integers(0, 60))
def test_where_chunks_are_cut_does_not_matter(bursts: list[dict[int, int]], at: int) -> None:
    whole = traffic(MACHINE, bursts)
    at = min(at, len(whole))
    parts = [
        Traffic(whole.nodes, 10.0, *(c[rows] for c in (whole.time_s, whole.node, whole.read, whole.written)))
        for rows in (slice(0, at), slice(at, None))
    ]
    mappings = {"one": round_robin(400, 20)}
    one, other = (judge(mappings, chunks, MACHINE)["one"] for chunks in ([whole], parts))
    assert msgspec.structs.astuple(one) == pytest.approx(msgspec.structs.astuple(other), nan_ok=True)
    first, second = history.learn([whole], MACHINE), history.learn(parts, MACHINE)
    assert first.interval.tolist() == second.interval.tolist()
    assert first.share.tolist() == second.share.tolist()


@settings(max_examples=12)
@given(BURSTS)
def test_shares_of_an_interval_are_one(bursts: list[dict[int, int]]) -> None:
    found = history.learn([traffic(MACHINE, bursts)], MACHINE)
    assert found.intervals == sum(map(bool, bursts))
    sums = np.bincount(found.interval, weights=found.share, minlength=found.intervals)
    assert sums == pytest.approx(np.ones(found.intervals))
    for number, interval in enumerate(filter(None, bursts)):
        part = found.part(number, number + 1)
        kept = sum(interval[node] for node in part.node.tolist())
        assert kept >= history.COVERED * sum(interval.values()) * (1 - 1e-9)


def test_of_many_intervals_a_sample_is_kept_in_order() -> None:
    bursts = [{number % 400: 1} for number in range(1_000)]
    found = history.learn([traffic(MACHINE, bursts)], MACHINE, most=50)
    times = [min(n for n in range(1_000) if n % 400 == node) for node in found.node.tolist()]
    assert found.intervals == 50 == len(found.node)
    assert len(set(times)) > 40, "not the first ones alone"


def test_nodes_that_the_machine_has_not_are_left_out() -> None:
    stranger = regular(400, 20, name="other")
    assert history.learn([traffic(stranger, [{3: 5}])], MACHINE).intervals == 0
    assert judge({"one": round_robin(400, 20)}, [traffic(stranger, [{3: 5}])], MACHINE)["one"].intervals == 0
