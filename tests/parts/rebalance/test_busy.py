"""When the servers have better things to do."""

from __future__ import annotations

from typing import Any

import pytest

from tarazu.parts.rebalance.targets import busy
from tarazu.wire.overview import Overview, Server, Target


def overview(writing: float | None, *, cpu: float = 0.1, **of: Any) -> Overview:
    server = {"name": "oss1", "age_s": 1.0, "stale": False, "interval_s": 1.0, "memory_load": 0.2} | of
    server |= {"cpu_load": cpu, "lnet_bytes_per_s": 0.0, "queue_wait_s": 0.0}
    osts = tuple(
        Target("scratch", i, "oss1", 1, 1, 1, True, speed_bytes_per_s=s, writing_bytes_per_s=writing)
        for i, s in enumerate((1e9, 1e9, None))
    )
    return Overview(0.0, (Server(**server),), osts)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (overview(0.29e9), False),
        (overview(0.31e9), True),
        (overview(None), False),
        (overview(0.0, cpu=0.95), True),
        (overview(0.0, cpu=0.95, stale=True), False),
    ],
    ids=["a-little", "much", "unknown", "loaded", "stale"],
)
def test_busy(now: Overview, expected: bool) -> None:
    assert busy(now).busy is expected
    assert not busy(now, "other").busy and busy(now, "other").osts == 0
