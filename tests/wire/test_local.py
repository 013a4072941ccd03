"""The Unix socket between `tarazu run` and clientd."""

from __future__ import annotations

import socket
import struct

import msgspec
import pytest

from tarazu.errors import WireError
from tarazu.wire import local


def test_a_plan_whose_files_have_no_name_of_their_own_is_refused() -> None:
    """Of a clientd of another version: fields side by side must not be taken for each other."""
    file = ["file", 1, "/f", "/f", "/f", False, 0, 0, 0, 100, 0, [[1]], 0]
    body = msgspec.msgpack.encode({"type": "planned", "status": "planned", "files": [file]})
    ours, theirs = socket.socketpair()
    with ours, local.Channel(theirs) as channel:
        ours.sendall(struct.pack("<I", len(body)) + body)
        with pytest.raises(WireError, match="a message of this version of tarazu"):
            channel.receive()
