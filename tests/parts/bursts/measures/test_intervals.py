"""What the busiest have in each interval, on a small machine, by hand and beside plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import BadInput
from tarazu.parts.bursts.measures.characteristics import Places
from tarazu.parts.bursts.measures.intervals import Collector, Shares, intervals
from tarazu.parts.bursts.traffic.machine import Machine, regular
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

MACHINE = regular(20, 4)
NAMES = (*MACHINE.nodes, "login1")
Row = tuple[int, int, int]
"""Interval, node, bytes."""


def traffic(rows: Sequence[Row], network: Sequence[int] | None = None) -> Traffic:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Traffic(
        NAMES,
        10.0,
        columns[:, 0] * 10 + 1000,
        columns[:, 1].astype(np.int32),
        columns[:, 2] // 3,
        columns[:, 2] - columns[:, 2] // 3,
        None if network is None else np.array(network, np.int64),
    )


def shares(
    *chunks: Traffic, mappings: dict[str, Numbers] | None = None, machine: Machine = MACHINE
) -> Shares:
    collector = Collector(machine, mappings)
    for each in intervals(chunks, Places(machine)):
        collector.add(each)
    return collector.shares()


def test_by_hand() -> None:
    found = shares(
        traffic([(0, 0, 60), (0, 1, 30), (0, 19, 10), (3, 4, 5), (3, 8, 5), (3, 12, 5), (3, 16, 5)])
    )
    assert found.time_s.tolist() == [1000, 1030]
    assert found.bytes.tolist() == [100, 20]
    assert found.nodes.tolist() == [0.6, 0.25]  # one of twenty
    assert found.cabinets.tolist() == [0.9, 0.25]  # one of five
    assert found.mapped["present"].busiest.tolist() == [0.9, 0.25]  # one of five
    assert found.mapped["present"].of_busiest.tolist() == [1, 1]
    assert found.mapped["present"].bytes.tolist() == [90, 5, 5, 5, 15]
    assert found.node_bytes[[0, 19]].tolist() == [60, 10]
    assert found.mean(found.nodes) == pytest.approx(0.425)
    assert found.weighted(found.nodes) == pytest.approx((60 + 5) / 120)


def test_several_mappings_in_one_pass() -> None:
    """Neighbours that meet on one I/O node meet on none when every one has another: i % n."""
    mappings = {"now": MACHINE.served_by, "round": np.arange(20, dtype=np.int32) % 5}
    found = shares(traffic([(0, n, 10) for n in range(4)]), mappings=mappings)
    assert found.mapped["now"].busiest.tolist() == [1.0]
    assert found.mapped["round"].busiest.tolist() == [0.25]
    assert found.mapped["now"].of_busiest.tolist() == [1]


def test_nodes_of_no_cabinet_and_no_io_node() -> None:
    nowhere = np.full(20, -1, np.int32)
    found = shares(traffic([(0, 3, 10)]), machine=Machine(MACHINE.nodes, (), (), nowhere, nowhere))
    assert found.nodes.tolist() == [1.0]
    assert np.isnan(found.cabinets).all()
    assert np.isnan(found.mapped["present"].busiest).all()
    assert found.mapped["present"].of_busiest.tolist() == [0]
    assert np.isnan(found.mean(found.cabinets))


def test_time_that_goes_back_is_refused() -> None:
    with pytest.raises(BadInput, match="after 1010"):
        shares(traffic([(1, 0, 1)]), traffic([(0, 0, 1)]))


def test_network_where_it_was_counted() -> None:
    (found,) = intervals([traffic([(0, 0, 1), (0, 1, 1)], network=[0, 7])], Places(MACHINE))
    assert found.network is not None and found.network[:3].tolist() == [0, 7, 0]
    (found,) = intervals([traffic([(0, 2, 1)])], Places(MACHINE))
    assert found.network is None


rows_of = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 10**12)), max_size=40)


@given(rows_of)
def test_as_plain_python_counts(rows: list[Row]) -> None:
    rows = sorted({(when, node): (when, node, moved) for when, node, moved in rows}.values())
    found = shares(traffic(rows))
    expected = []
    for when in sorted({row[0] for row in rows}):
        moved = [0] * 20
        for at, node, count in rows:
            if at == when and node < 20:
                moved[node] += count
        if total := sum(moved):
            cabinets = sorted((sum(moved[i : i + 4]) for i in range(0, 20, 4)), reverse=True)
            nodes = sorted(moved, reverse=True)
            expected.append((1000 + 10 * when, nodes[0] / total, cabinets[0] / total, cabinets[0] / total))
    assert found.time_s.tolist() == [row[0] for row in expected]
    assert found.nodes == pytest.approx(np.array([row[1] for row in expected]))
    assert found.cabinets == pytest.approx(np.array([row[2] for row in expected]))
    assert found.mapped["present"].busiest == pytest.approx(np.array([row[3] for row in expected]))
