"""What a client's `offset_stats` says, as it was captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.stats import offset_stats
from tarazu.stats.offset_stats import SequentialRun


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
