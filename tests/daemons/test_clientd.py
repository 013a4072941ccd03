"""clientd and hostile users of its socket: sizes, silence, what is no file."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

import pytest

from tarazu.config import without_password
from tarazu.daemons.clientd import check_ids
from tarazu.daemons.planner import MAX_HISTORY_BYTES, read_history
from tarazu.daemons.shares import Share
from tarazu.errors import Busy, TraceError, Unavailable, WireError
from tarazu.wire import local


def test_a_history_must_be_a_file_of_sane_size(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    large = tmp_path / "large.run"
    with large.open("wb") as file:
        file.truncate(MAX_HISTORY_BYTES + 1)
    device, big = os.open("/dev/zero", os.O_RDONLY), os.open(large, os.O_RDONLY)
    try:
        for descriptor in (reading, device, big):
            with pytest.raises(TraceError, match="expected a file of at most"):
                read_history(descriptor)
    finally:
        for descriptor in (reading, writing, device, big):
            os.close(descriptor)


def test_an_announced_frame_beyond_the_limit_is_refused_before_it_comes() -> None:
    here, there = socket.socketpair()
    there.sendall(struct.pack("<I", local.MAX_REQUEST_BYTES + 1))
    with there, local.Channel(here, max_bytes=local.MAX_REQUEST_BYTES) as channel, pytest.raises(WireError):
        channel.receive()


def test_a_frame_for_which_there_is_no_room_is_busy_and_takes_none() -> None:
    share = Share(100)
    here, there = socket.socketpair()
    body = b"x" * 60
    there.sendall(struct.pack("<I", len(body)) + body)
    with there, local.Channel(here, room=share.of(1)) as channel, pytest.raises(Busy, match="no room"):
        channel.receive()
    assert not share.used


def test_room_and_descriptors_are_given_back_with_the_conversation() -> None:
    frames, descriptors = Share(1000), Share(10)
    here, there = socket.socketpair()
    with there, local.Channel(there) as sender, open(os.devnull, "rb") as file:
        with local.Channel(here, room=frames.of(1), descriptor_room=descriptors.of(1)) as channel:
            sender.send(local.StatusQuery(), [file.fileno()] * 3)
            assert isinstance(channel.receive(), local.StatusQuery)
            assert frames.used[1] > 0 and descriptors.used[1] == 3 == len(channel.descriptors)
            taken = list(channel.descriptors)
        assert not frames.used and not descriptors.used
        for descriptor in taken:
            with pytest.raises(OSError):
                os.fstat(descriptor)


def test_a_step_cannot_name_more_allocations_than_it_has() -> None:
    check_ids(["a"] * local.MAX_IDS)
    for ids in (["a"] * (local.MAX_IDS + 1), [""], ["a" * 1000]):
        with pytest.raises(WireError, match="at most"):
            check_ids(ids)


def test_a_conversation_ends_although_a_byte_comes_now_and_then() -> None:
    here, there = socket.socketpair()
    started = time.monotonic()
    there.sendall(struct.pack("<I", 1000) + b"x")
    with there, local.Channel(here, deadline_s=0.3) as channel, pytest.raises(Unavailable):
        channel.receive()
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("mysql://tarazu:secret@db/t", "mysql://tarazu:***@db/t"),
        ("mysql://tarazu@db/t", "mysql://tarazu@db/t"),
        ("/var/lib/tarazu/interaction.db", "/var/lib/tarazu/interaction.db"),
    ],
)
def test_passwords_are_not_shown(location: str, shown: str) -> None:
    assert without_password(location) == shown
