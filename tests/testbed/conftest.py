"""One small testbed for the whole suite, and an agent: a Python process that lives on its first client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.errors import BadInput
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.library import library_directory

AGENT = r"""
import errno, fcntl, json, os, sys
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed import lov
MIB = 1 << 20
DELAY = os.O_NOCTTY | 0o20000
SETSTRIPE, GETSTRIPE, GETSTRIPE_NEW = 0x4008669A, 0x4008669B, 0x8020669B

def attempt(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]

def plain(count=1, size=MIB, osts=(), hint=None, pool="", pattern="raid0"):
    return lov.encode(Layout((Component(0, EOF, size, count, pattern, pool),)), (tuple(osts),), (hint,))

def composite(*parts, pool=""):
    # parts: (start, end, count or list of OSTs, start hint or None)
    comps, lists, hints = [], [], []
    for start, end, stripes, *hint in parts:
        listed = tuple(stripes) if isinstance(stripes, (list, tuple)) else ()
        comps.append(Component(start, end, MIB, len(listed) or stripes, pool=pool))
        lists.append(listed)
        hints.append(hint[0] if hint else None)
    return lov.encode(Layout(tuple(comps), True), tuple(lists), tuple(hints))

def three(last=(1, 2, 3, 4), middle=(5, 6)):
    return composite((0, MIB, [0]), (MIB, 8 * MIB, list(middle)), (8 * MIB, EOF, list(last)))

def delayed(path, flags=os.O_RDWR, mode=0o644):
    return os.open(path, flags | os.O_CREAT | DELAY, mode)

def set_layout(fd, blob, name="lustre.lov"):
    os.setxattr(fd, name, blob)
    return 0

def set_ioctl(fd, blob):
    return fcntl.ioctl(fd, SETSTRIPE, bytearray(blob))

def osts(path):
    return [list(o) for o in lov.decode(os.getxattr(path, "lustre.lov")).osts]

def create(path, blob):
    fd = delayed(path)
    set_layout(fd, blob)
    return fd

os.chdir(sys.argv[1])
for line in sys.stdin:
    names = dict(globals())
    try:
        exec(json.loads(line), names)
        answer = {"result": names.get("result")}
    except BaseException as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
"""


class Agent:
    """Runs Python source on a client; what the source leaves in `result` comes back."""

    def __init__(self, bed: Testbed, client: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(bed.client_mount(client))],
            env=os.environ | bed.environment(client),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, source: str) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(textwrap.dedent(source)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(timeout=120)
        self.process.stdout.close()


def _need_library() -> None:
    try:
        library_directory()
    except BadInput as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def memory_directory() -> Iterator[Path]:
    """A directory in memory where there is one: creating files on a busy disk takes most of the suite's time."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tarazu-test-", dir=base) as directory:
        # An ordinary user's test must get through.
        os.chmod(directory, 0o711)
        yield Path(directory)


@pytest.fixture(scope="session")
def shared_bed(memory_directory: Path) -> Iterator[Testbed]:
    _need_library()
    directory = memory_directory / "shared"
    bed = up(
        directory, osss=4, osts_per_oss=2, clients=2, interval_s=60, sparse=False, pools={"flash": [1, 2, 3]}
    )
    yield bed
    assert bed.crashed() is None
    down(directory)


@pytest.fixture
def bed(shared_bed: Testbed) -> Iterator[Testbed]:
    """8 OSTs on 4 servers, real data, empty; its OSTs are well again afterwards."""
    yield shared_bed
    shared_bed.clear()
    for index in range(len(shared_bed.oss_of_ost)):
        shared_bed.set_ost(index, active=True, no_create=False, degraded=False, readonly=False, full=False)


@pytest.fixture(scope="session")
def shared_agent(shared_bed: Testbed) -> Iterator[Agent]:
    agent = Agent(shared_bed)
    yield agent
    agent.close()


@pytest.fixture
def agent(bed: Testbed, shared_agent: Agent) -> Agent:
    return shared_agent


@pytest.fixture
def new_bed(memory_directory: Path) -> Iterator[Any]:
    """A function that makes testbeds which end with the test."""
    _need_library()
    made: list[Path] = []

    def make(**options: Any) -> Testbed:
        directory = memory_directory / f"tb{len(made)}"
        made.append(directory)
        return up(directory, **({"interval_s": 60} | options))

    yield make
    for directory in made:
        down(directory)


@pytest.fixture
def make_agent(request: pytest.FixtureRequest) -> Any:
    """A function that starts an agent on a testbed."""

    def make(bed: Testbed) -> Agent:
        agent = Agent(bed)
        request.addfinalizer(agent.close)
        return agent

    return make
