"""What announcers and a council say: whole, bounded, and nothing else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import WireError
from tarazu.parts.council.exchange import (
    MAX_LEVERS,
    Asked,
    Decided,
    Observed,
    Refused,
    TuneStatus,
    encode,
    from_council,
    to_council,
)
from tarazu.parts.council.pattern import Direction, Observation

SEEN = Observation(1.0, write=Direction(10**9, 1000, 0.1), demand=4.0)
OBSERVED = Observed("1", "g", "oss1", "oss", SEEN, {"nrs": "crrn 16"}, "apply", "")


@pytest.mark.parametrize("message", [OBSERVED, Asked("a")], ids=["observed", "asked"])
def test_what_a_council_is_told_comes_whole(message: Observed | Asked) -> None:
    assert to_council(encode(message)) == message
    with pytest.raises(WireError):
        from_council(encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Decided("1", "mds1", "g", 9, "apply", {"nrs": "fifo"}, "why"),
        Refused("1", "why"),
        TuneStatus("a", {"mode": "observe", "nodes": {}}),
    ],
    ids=["decided", "refused", "told"],
)
def test_what_a_council_says_comes_whole(message: Decided | Refused | TuneStatus) -> None:
    assert from_council(encode(message)) == message
    with pytest.raises(WireError):
        to_council(encode(message))


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "n" * 200},
        {"kind": "printer"},
        {"mode": "all"},
        {"in_force": {f"lever{n}": "1" for n in range(MAX_LEVERS + 1)}},
        {"problem": "x" * 1000},
        {"observation": [1.0, [1.5]]},
        {"protocol": 99},
    ],
    ids=["host", "kind", "mode", "levers", "problem", "bytes", "protocol"],
)
def test_what_is_out_of_bounds_is_refused(wrong: dict[str, object]) -> None:
    said = {**msgspec.msgpack.decode(encode(OBSERVED)), **wrong}
    with pytest.raises(WireError):
        to_council(msgspec.msgpack.encode(said))


def test_observations_of_later_versions_are_read() -> None:
    said = msgspec.msgpack.decode(encode(OBSERVED))
    said["observation"].append("of a later version")
    heard = to_council(msgspec.msgpack.encode(said))
    assert isinstance(heard, Observed) and heard.observation == SEEN


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for read in (to_council, from_council):
        try:
            read(data)
        except WireError as error:
            assert "expected" in str(error)
