"""Generated queues hold what they were made to hold, and their shares are of the pattern that they claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.measures.measures import normalised_unevenness
from tarazu.parts.bursts.measures.published import NAMES, STATISTICS, Name
from tarazu.parts.bursts.study import generator
from tarazu.parts.bursts.study.queue import TrafficPattern, drawn

SMALL = 2000
PRINTED = {statistic.key: statistic.values for statistic in STATISTICS}


@pytest.mark.parametrize("name", NAMES)
def test_jobs_are_in_the_published_proportions(name: Name) -> None:
    queue = generator.queue(name, SMALL)
    assert len(queue) == SMALL
    several = queue.size > 1
    all_rank = (queue.pattern == TrafficPattern.EVEN) | (queue.pattern == TrafficPattern.UNEVEN)
    found = {
        "root": (queue.pattern == TrafficPattern.ROOT)[several].mean(),
        "even": (queue.pattern == TrafficPattern.EVEN)[all_rank].mean(),
        "intensive": queue.intensive.mean(),
        "all rank": all_rank.mean(),
        "their traffic": queue.volume[queue.intensive].sum() / queue.volume.sum(),
        "low communication": (queue.network < queue.volume).mean(),
        "optimizable": (queue.intensive & all_rank & (queue.network < queue.volume)).mean(),
    }
    for key, value in found.items():
        assert value * 100 == pytest.approx(PRINTED[key][name], abs=0.3), key
    assert (
        queue.volume[queue.intensive].min() > generator.INTENSIVE_BYTES > queue.volume[~queue.intensive].max()
    )
    assert (np.diff(queue.submit_s) >= 0).all()
    assert (queue.limit_s >= queue.run_s).all()
    assert (queue.io_s < queue.run_s).all()
    assert ((queue.size == 1) == (queue.pattern == TrafficPattern.SINGLE)).all()
    assert (queue.applications.size[queue.application] == queue.size).all()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([TrafficPattern.ROOT, TrafficPattern.EVEN, TrafficPattern.UNEVEN]),
    st.integers(2, 700),
    st.floats(0.01, 0.5),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_shares_are_of_their_pattern(
    pattern: TrafficPattern, size: int, writers: float, divergent: bool, seed: int
) -> None:
    found = drawn(
        pattern, size, writers, divergent, np.random.default_rng(seed), np.random.default_rng(seed + 1)
    )
    assert found.shape == (size,)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    root, uneven = found.max() > 0.95, normalised_unevenness(found) > 0.05
    assert (root, uneven) == {
        TrafficPattern.ROOT: (True, True),
        TrafficPattern.EVEN: (False, False),
        TrafficPattern.UNEVEN: (False, True),
    }[pattern]
