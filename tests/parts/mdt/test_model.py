"""One word for each MDT."""

from __future__ import annotations

from typing import Any

import pytest

from tarazu.parts.mdt.model import Mdt

GB = 10**9


@pytest.mark.parametrize(
    ("of", "word", "why"),
    [
        ({}, "ok", ""),
        ({"relative_speed": 0.6}, "ok", ""),
        (
            {"relative_speed": 0.25, "speed_why": "as compared"},
            "sick",
            "0.25 of its peers' speed (as compared)",
        ),
        ({"files_free": 20}, "nearly-full", "98% of its inodes or its space is used"),
        ({"files_free": 0}, "full", "no inodes"),
        ({"stale": True, "files_free": 0}, "silent", "no report from mds1"),
        ({"active": False, "health": "inactive"}, "refusing", "inactive"),
        ({"active": False, "health": "dead: DISCONN", "stale": True}, "dead", "DISCONN"),
        ({"no_create": True}, "refusing", "no_create"),
    ],
)
def test_one_word_for_each(of: dict[str, Any], word: str, why: str) -> None:
    fields = {"total_bytes": 10 * GB, "avail_bytes": 9 * GB, "files_total": 1000, "files_free": 900, **of}
    state = Mdt(index=1, server="mds1", **fields).judged
    assert (state.verdict, state.why) == (word, why)
