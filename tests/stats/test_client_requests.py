"""What a client's `rpc_stats` and `offset_stats` say, as they were captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.stats import offset_stats, rpc_stats
from tarazu.stats.offset_stats import SequentialRun


def test_requests_of_a_client_to_one_ost(data: Path) -> None:
    seen = rpc_stats.parse((data / "client/osc.rpc_stats.txt").read_text())
    assert seen == rpc_stats.RpcStats(
        (38, 141),
        38 + 137 + 2 * 4,
        35 * 4 + 2 * 256 + 512 + 120 + 4 * 16 + 4 * 32 + 8 * 256 + 5 * 1024,
        1795165937.53513068,
    )
    with pytest.raises(ValueError, match="no table"):
        rpc_stats.parse("snapshot_time: 1.0 secs.nsecs\n")


def test_where_programs_jumped(data: Path) -> None:
    runs = offset_stats.parse((data / "client/llite.offset_stats.txt").read_text())
    assert runs is not None and len(runs) == 11
    assert (
        runs[0] == SequentialRun(True, 1181, 1 << 20, 9 << 20, 1 << 20, 1 << 20, 0) and runs[0].requests == 8
    )
    assert (
        runs[-1] == SequentialRun(False, 1189, 2048000, 2064384, 16384, 16384, -49152)
        and runs[-1].requests == 1
    )
    assert offset_stats.parse("disabled\n write anything to this file to activate\n") is None
    with pytest.raises(ValueError, match="R/W"):
        offset_stats.parse("read_bytes 1\n")
