"""clientd and hostile users of its socket: sizes, silence, what is no file."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

import pytest

from tarazu.config import without_password
from tarazu.daemons.planner import read_history
from tarazu.errors import TraceError, Unavailable, WireError
from tarazu.trace.runfile import MAX_RUN_BYTES
from tarazu.wire import local


def test_a_history_must_be_a_file_of_sane_size(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    large = tmp_path / "large.run"
    with large.open("wb") as file:
        file.truncate(MAX_RUN_BYTES + 1)
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
