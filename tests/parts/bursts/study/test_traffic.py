"""Generated traffic is that of its jobs, byte for byte, where and when they run."""

from __future__ import annotations

import numpy as np
import pytest

from tarazu.parts.bursts.measures.published import HARDWARE
from tarazu.parts.bursts.study.generator import queue
from tarazu.parts.bursts.study.knobs import KNOBS
from tarazu.parts.bursts.study.queue import TrafficPattern, shares
from tarazu.parts.bursts.study.system import BurstSystem, generate, moved, traffic


@pytest.fixture(scope="module")
def small() -> BurstSystem:
    return generate("tianhe-1a", 300)


def test_bytes_of_a_job_are_its_volume_on_its_nodes_while_it_runs(small: BurstSystem) -> None:
    made, ran = small.queue, small.replayed
    some = np.flatnonzero((made.pattern == TrafficPattern.UNEVEN) & made.intensive)
    job = int(some[np.argmin(made.run_s[some])])
    alone = np.full(len(made), np.nan)
    start, end = alone.copy(), alone.copy()
    start[job], end[job] = ran.start_s[job], ran.end_s[job]
    begin, until = int(start[job]) // 10 * 10, int(end[job]) // 10 * 10 + 20
    chunks = list(traffic("tianhe-1a", made, small.machine, start, end, ran.nodes, begin, until))
    bytes_ = np.concatenate([chunk.bytes for chunk in chunks])
    nodes = np.concatenate([chunk.node for chunk in chunks])
    network = np.concatenate([chunk.network for chunk in chunks if chunk.network is not None])
    rows = sum(map(len, chunks))
    assert abs(bytes_.sum() - made.volume[job]) <= rows
    assert abs(network.sum() - made.network[job]) <= rows
    per_node = np.bincount(nodes, bytes_, len(small.machine.nodes))
    expected = shares(made, job) * made.volume[job]
    assert np.abs(per_node[ran.nodes[job]] - expected).max() <= rows
    assert per_node.sum() == per_node[ran.nodes[job]].sum()
    assert 0 < sum(chunk.read.sum() for chunk in chunks) <= made.volume[job] / made.bursts[job] * 1.001


def test_chunks_of_any_length_give_the_same(small: BurstSystem) -> None:
    made, ran = small.queue, small.replayed
    log = KNOBS["tianhe-1a"].intensive.log
    edges = np.arange(0, 7210, 10.0)
    job = int(np.argmax(made.volume * (ran.start_s < 3600)))
    whole, read = moved(made, job, float(ran.start_s[job]), float(ran.end_s[job]), log, edges)
    first, _ = moved(made, job, float(ran.start_s[job]), float(ran.end_s[job]), log, edges[:361])
    assert whole.sum() > 0
    assert (whole >= read).all()
    assert first == pytest.approx(whole[:360])


def test_a_system_is_placed_where_there_is_room(small: BurstSystem) -> None:
    ran = small.replayed
    assert HARDWARE["tianhe-1a"].nodes == len(small.machine.nodes) == 5677
    assert (ran.start_s >= small.queue.submit_s).all()
    busy = np.full(len(small.machine.nodes), -1.0)
    for job in np.argsort(ran.start_s, kind="stable").tolist():
        at = ran.nodes[job]
        assert len(at) == small.queue.size[job]
        assert (busy[at] <= ran.start_s[job]).all()
        busy[at] = ran.end_s[job]
    assert len(small.jobs()) == 300
    assert queue("tianhe-1a", 300).volume == pytest.approx(small.queue.volume)
