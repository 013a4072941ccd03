"""The Unix socket between `tarazu run` and clientd."""

from __future__ import annotations

import socket
import struct
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import WireError
from tarazu.model import FileName
from tarazu.wire import local
from tarazu.wire.channel import Channel


def test_a_plan_whose_files_have_no_name_of_their_own_is_refused() -> None:
    """Of a clientd of another version: fields side by side must not be taken for each other."""
    file = ["file", 1, "/f", "/f", "/f", False, 0, 0, 0, 100, 0, [[1]], 0]
    body = msgspec.msgpack.encode({"type": "planned", "status": "planned", "files": [file]})
    ours, theirs = socket.socketpair()
    with ours, Channel(theirs) as channel:
        ours.sendall(struct.pack("<I", len(body)) + body)
        with pytest.raises(WireError, match="a message of this version of tarazu"):
            channel.receive()


NAMES = st.binary(max_size=12).map(lambda raw: raw.decode("utf-8", "surrogateescape")) | st.text(max_size=6)
MESSAGES = st.one_of(
    st.builds(local.DirectoriesWanted, st.lists(NAMES, max_size=3).map(tuple)),
    st.builds(local.DirectoryLayouts, st.binary(max_size=9), st.dictionaries(NAMES, st.binary(max_size=9))),
    st.builds(local.PlansQuery, application=NAMES, key=NAMES),
    st.builds(
        lambda names, key, n: local.PlanReply(
            "planned",
            reason=key[:2],
            files=tuple(
                local.PlannedFile(n, FileName(*texts, True, -1, 0, n), n, 0, ((1, n),))
                for texts in (names, ("/plain", "/a", "/b"), names[::-1])
            ),
            left={key: n},
        ),
        st.tuples(NAMES, NAMES, NAMES),
        NAMES,
        st.integers(0, 2**31),
    ),
    st.builds(lambda key: local.PlansReply({key: [key, 1, None, {"a": key}]}), NAMES),
)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(MESSAGES)
def test_any_name_that_a_file_can_have_travels(message: local.LocalMessage) -> None:
    ours, theirs = socket.socketpair()
    with Channel(ours) as one, Channel(theirs) as other:
        one.send(message)
        assert other.receive() == message


@pytest.mark.parametrize("inner", [b"", b"\xc1", b"\x81\x91\x01\x02", b"\x91" * 5000 + b"\x01", b"\xa3//%"])
def test_nonsense_in_an_escaped_message_is_refused(inner: bytes) -> None:
    body = b"\x82\xa4type\xa7escaped\xa7message" + inner
    with pytest.raises(WireError, match="a message of this version of tarazu"):
        local.decode(body)


def test_one_odd_name_in_a_large_plan_costs_little() -> None:
    """Not a walk through the message, which took 2 s for 100,000 files: the job waits for its plan."""
    name = FileName("/run/f", "/run/f", "/run/f", False, 0, 0, 0)
    files = [local.PlannedFile(i, name, i, 0, ((1, 2),)) for i in range(10_000)]
    odd = msgspec.structs.replace(files[7], name=msgspec.structs.replace(name, key="/\udcff"))
    plan = local.PlanReply("planned", files=(*files[:7], odd, *files[8:]))
    started = time.process_time()
    body = local.encode(plan)
    took_s = time.process_time() - started
    assert local.decode(body) == plan and b"escaped" not in body
    started = time.process_time()
    _ = msgspec.to_builtins(plan)
    assert took_s < 3 * (time.process_time() - started)


def test_only_messages_with_odd_names_are_escaped() -> None:
    assert b"escaped" not in local.encode(local.PlansQuery(key="/a//ü"))
    assert b"escaped" in local.encode(local.PlansQuery(key="/a\udcff"))
