"""A server's power cut, as it was seen on a real Lustre."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tarazu.sim.testbed import Testbed
from tarazu.stats.osp import Osps
from tests.testbed.conftest import Agent

LATE = "fd = create({name!r}, composite((0, MIB, [0]), (MIB, EOF, [2])))"
"""Byte 0 is on OST 0, what comes behind 1 MiB on OST 2, which has no object before it is written."""
PUNCH = """
import ctypes
libc = ctypes.CDLL(None)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
result = libc.fallocate(fd, 3, 15 << 40, 4096)
"""


@pytest.fixture
def killed(bed: Testbed) -> Iterator[Testbed]:
    """OSTs 2 and 3 are on a server that is gone."""
    bed.kill_oss("oss2", notice_s=0.5)
    yield bed
    bed.revive_oss("oss2")


def lost(bed: Testbed) -> set[int]:
    return {index for _, index in Osps(bed.mds_root).look().lost}


def test_the_mds_goes_on_creating_there_and_notices_later(killed: Testbed, agent: Agent) -> None:
    assert not lost(killed)
    assert agent("os.close(create('listed', plain(2, osts=(2, 3)))); result = osts('listed')") == [[2, 3]]
    agent("os.close(os.open('default', os.O_WRONLY | os.O_CREAT)); result = 0")
    deadline = time.monotonic() + 10
    while lost(killed) != {2, 3}:
        assert time.monotonic() < deadline, lost(killed)
        time.sleep(0.05)
    killed.revive_oss("oss2")
    killed.refresh()
    assert not lost(killed)


@pytest.mark.parametrize(
    ("layout", "what"),
    [
        (LATE, "os.write(fd, b'elsewhere'); os.pwrite(fd, b'x', 2 * MIB); result = 0"),
        ("fd = create({name!r}, plain(1, osts=(3,)))", "os.ftruncate(fd, 1); result = 0"),
        (LATE, PUNCH),
    ],
    ids=["write", "truncate", "fallocate"],
)
def test_what_has_to_reach_it_waits_until_it_is_back(
    killed: Testbed, agent: Agent, layout: str, what: str
) -> None:
    other = Agent(killed)
    try:
        other(layout.format(name="waits") + "; sys.fd = fd; result = 'an open does not wait'")
        answers: list[object] = []
        thread = threading.Thread(target=lambda: answers.append(other(f"fd = sys.fd\n{what}")))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive() and not answers
        assert agent("os.close(os.open('waits', os.O_RDONLY)); result = 'opened'") == "opened"
        killed.revive_oss("oss2")
        thread.join(10)
        assert answers == [0]
    finally:
        killed.revive_oss("oss2")
        other.close()
