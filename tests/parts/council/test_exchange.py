"""What announcers and a council say: whole, bounded, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import WireError
from tarazu.parts.council.exchange import (
    MAX_LEVERS,
    AnnouncerEnd,
    Asked,
    CouncilEnd,
    Decided,
    Observed,
    Refused,
    TuneStatus,
    encode,
    from_council,
    to_council,
)
from tarazu.parts.council.observation import Direction, Observation
from tarazu.wire.sockets import ZmqTransport

SEEN = Observation(1.0, write=Direction(10**9, 1000, 3, (0.5, 0.25), 0.1), demand=4.0)
OBSERVED = Observed("1", "g", "oss1", "oss", 7, 1, SEEN, {"nrs": "crrn 16"}, "apply", "")


@pytest.mark.parametrize("message", [OBSERVED, Asked("a")], ids=["observed", "asked"])
def test_what_a_council_is_told_comes_whole(message: Observed | Asked) -> None:
    assert to_council(encode(message)) == message
    with pytest.raises(WireError):
        from_council(encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Decided("1", "mds1", 3, "g", 9, "apply", {"nrs": "fifo"}, "why"),
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
        {"sequence": -1},
        {"mode": "all"},
        {"in_force": {f"lever{n}": "1" for n in range(MAX_LEVERS + 1)}},
        {"problem": "x" * 1000},
        {"observation": [1.0, [1.5]]},
        {"protocol": 99},
    ],
    ids=["host", "kind", "sequence", "mode", "levers", "problem", "bytes", "protocol"],
)
def test_what_is_out_of_bounds_is_refused(wrong: dict[str, object]) -> None:
    said = {**msgspec.msgpack.decode(encode(OBSERVED)), **wrong}
    with pytest.raises(WireError):
        to_council(msgspec.msgpack.encode(said))


@pytest.mark.parametrize("more", [[], [5.0], [5.0, "of a later version"]], ids=["older", "this", "later"])
def test_observations_of_other_versions_are_read(more: list[object]) -> None:
    said = msgspec.msgpack.decode(encode(OBSERVED))
    said["observation"] = [*said["observation"][:4], *more]
    heard = to_council(msgspec.msgpack.encode(said))
    assert isinstance(heard, Observed) and heard.observation is not None
    assert heard.observation.rpc_bytes == (more[0] if more else 0.0)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for read in (to_council, from_council):
        try:
            read(data)
        except WireError as error:
            assert "expected" in str(error)


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[CouncilEnd, AnnouncerEnd]]:
    transport = ZmqTransport(insecure=True)
    council = CouncilEnd(transport, f"ipc://{tmp_path}/council")
    yield council, AnnouncerEnd(transport, council.address)
    transport.close()


def _slept(announcer: AnnouncerEnd, fd: int) -> float:
    """How long a sleep of 0.02 s lasts in which nothing comes, in seconds."""
    before = time.monotonic()
    assert not announcer.sleep(0.02, fd)
    assert announcer.receive() is None
    return time.monotonic() - before


def test_who_sleeps_hears_what_comes_and_what_came_before(ends: tuple[CouncilEnd, AnnouncerEnd]) -> None:
    """Each answer is heard by the sleep that it ends; nothing is left lying, and none ends two of them."""
    council, announcer = ends
    fd, writer = os.pipe()
    try:
        assert not announcer.sleep(0.0, fd)
        assert announcer.receive() is None
        deadline = time.monotonic() + 120.0
        while not announcer.send(OBSERVED):
            assert time.monotonic() < deadline
        while (got := council.receive()) is None:
            assert time.monotonic() < deadline
        for generation in range(5):
            # Once it comes while nobody sleeps, once two at a time.
            many = 1 + generation % 2
            for number in range(many):
                council.send(
                    got[0].route, encode(Decided("1", "c", 1, "g", generation * 2 + number, "apply"))
                )
            heard: list[int] = []
            while len(heard) < many:
                assert time.monotonic() < deadline
                assert not announcer.sleep(1.0, fd)
                while (said := announcer.receive()) is not None:
                    assert isinstance(said, Decided)
                    heard.append(said.generation)
            assert heard == [generation * 2 + number for number in range(many)]
            # ZeroMQ may wake once more for a connection's own sake, not again and again.
            assert any(_slept(announcer, fd) >= 0.015 for _ in range(3))
        os.write(writer, b"x")
        assert announcer.sleep(3600.0, fd)
        assert announcer.receive() is None
    finally:
        os.close(fd)
        os.close(writer)
