"""Figure 13's settings beside what can be computed by hand."""

from __future__ import annotations

import pytest

from tarazu.parts.bursts.study import fig13
from tarazu.parts.bursts.study.fig13 import Parameters, communication_s, io_s


def test_io_takes_as_long_as_its_slowest_link() -> None:
    known = Parameters(node_bytes_per_s=1e9, io_node=2.0)
    assert io_s([4e9], [0], known) == pytest.approx(4.0)
    assert io_s([4e9] * 4, [0] * 4, known) == pytest.approx(8.0)
    assert io_s([4e9] * 4, [0, 1, 2, 3], known) == pytest.approx(4.0)
    # 2 and 6 GB through 1 GB/s: alike until the smaller one is through.
    assert io_s([2e9, 6e9], [0, 0], Parameters(io_node=1.0)) == pytest.approx(8.0)


def test_communication_takes_longer_from_leaf_to_leaf_and_as_links_allow() -> None:
    known = Parameters(processes=1, outstanding=1, message_bytes=1000, latency_s=1e-6, hop_s=0.5e-6)
    # 1 GB/s of latency alone: half of what each sends goes to the other node.
    assert communication_s([0, 0], 1e9, known) == pytest.approx(1.0)
    assert communication_s([0, 1], 1e9, known) == pytest.approx(2.0)
    assert communication_s([0, 5], 1e9, known) == pytest.approx(3.0)
    assert communication_s([0], 1e9, known) == 0.0
    narrow = Parameters(processes=1, latency_s=1e-12, link_bytes_per_s=1e9, uplink=0.25 / 64)
    assert communication_s([0, 0], 2e9, narrow) == pytest.approx(1.0)
    assert communication_s([0, 1], 2e9, narrow) == pytest.approx(4.0)


def test_even_traffic_is_between_even_nodes_and_what_one_node_needs() -> None:
    found = fig13.uneven(8, Parameters(io_node=1.0))
    heaviest = sum(range(57, 65)) / 64
    assert found.even_nodes_s == pytest.approx(heaviest + sum(range(49, 57)) / 64)
    assert heaviest <= found.even_traffic_s < found.ordered_s < found.even_nodes_s
    wide = fig13.uneven(8, Parameters(io_node=6.0))
    assert wide.even_traffic_s == wide.even_nodes_s == pytest.approx(heaviest)


def test_reallocation_pays_up_to_its_break_even() -> None:
    found = fig13.communicating(16)
    known = Parameters(sent_bytes=found.break_even * Parameters().process_bytes)
    again = fig13.communicating(16, known)
    assert sum(again.reallocated) == pytest.approx(sum(again.original))
    assert sum(found.remapped) < sum(found.reallocated) < sum(found.original) or found.break_even < 8
