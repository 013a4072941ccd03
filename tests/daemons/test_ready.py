"""mdsd and clientd are ready once their processes have loaded what a plan needs, and answer before, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.wire import local
from tarazu.wire.channel import connect
from tarazu.wire.messages import AllocationReply
from tests.daemons.conftest import DATA, PATIENCE_S, Site, allocation, ask, patiently
from tests.daemons.test_service import Systemd, configure, started

ROOT = Path(__file__).parents[2]
HELD = {
    "mdsd": "tarazu.daemons.mdsd.placing",
    "clientd": "tarazu.daemons.clientd.forecasts.server",
}
"""Daemon → the process in which it computes."""


class Hold:
    """Python processes of one module do not get beyond their start before `let_go`."""

    def __init__(self, directory: Path, module: str) -> None:
        self._go = directory / "go"
        self._module = module
        at = directory / "held"
        at.mkdir()
        (at / "sitecustomize.py").write_text(
            "import os, sys, time\n"
            "parent = os.getppid()\n"
            f"while {module!r} in sys.orig_argv and not os.path.exists({str(self._go)!r}):\n"
            "    time.sleep(0.01)\n"
            "    if os.getppid() != parent:\n"
            "        os._exit(0)\n"
        )
        self.environ = {"PYTHONPATH": os.pathsep.join([str(at), os.environ.get("PYTHONPATH", "")])}

    def let_go(self) -> None:
        self._go.touch()

    def again(self) -> None:
        self._go.unlink()

    def pid(self, parent: int) -> int | None:
        """Of the process that `parent` has started."""
        children = Path(f"/proc/{parent}/task").glob("*/children")
        for pid in [int(word) for of in children for word in of.read_text().split()]:
            if self._module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return pid
        return None


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    listening = Systemd(str(tmp_path / "notify"))
    yield listening
    listening.socket.close()


def said_so_far(systemd: Systemd) -> list[dict[str, str]]:
    lines = []
    systemd.socket.setblocking(False)
    while True:
        try:
            lines.append(dict(line.split("=", 1) for line in systemd.socket.recv(4096).decode().splitlines()))
        except BlockingIOError:
            return lines


def killed(hold: Hold, daemon: subprocess.Popen[str]) -> None:
    pid = hold.pid(daemon.pid)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_a_request_that_comes_while_mdsd_starts_waits_and_is_placed(
    site: Site, systemd: Systemd, tmp_path: Path
) -> None:
    hold = Hold(tmp_path, HELD["mdsd"])
    mdsd = site.start("mdsd", "--root", str(DATA / "mds"), environ={**hold.environ, **systemd.environ})
    site.ossd()
    client = site.client()
    for id in ("at the start", "after its process was killed"):
        client.submit(allocation(id, deadline_s=1e6))
        status = site.wait_status(lambda status: client.receive(0) or status["requests"]["waiting"])
        assert not status["ready"] and status["requests"]["answers"].get("declined", 0) == 0
        if id == "at the start":
            said = said_so_far(systemd)
            assert any("EXTEND_TIMEOUT_USEC" in each for each in said)
            assert not any("READY" in each for each in said)
        hold.let_go()
        reply = client.receive(PATIENCE_S)
        assert isinstance(reply, AllocationReply) and (reply.id, reply.status) == (id, "allocated")
        if id == "at the start":
            systemd.wait(lambda told: "READY" in told)
        assert site.status()["ready"]
        hold.again()
        killed(hold, mdsd)
        site.wait_status(lambda status: not status["ready"])


def test_a_request_whose_time_is_over_while_mdsd_starts_is_told_so(site: Site, tmp_path: Path) -> None:
    hold = Hold(tmp_path, HELD["mdsd"])
    site.start("mdsd", "--root", str(DATA / "mds"), environ=hold.environ)
    reply = ask(site.client(), allocation(deadline_s=0.1))
    assert (reply.status, reply.reason) == ("declined", "mdsd is starting: loads what computes allocations")


def test_clientd_is_ready_when_forecasts_can_be_made_and_again_when_their_server_was_killed(
    site: Site, systemd: Systemd, tmp_path: Path
) -> None:
    hold = Hold(tmp_path, HELD["clientd"])
    configure(site)
    clientd = started(site, "clientd", environ={**hold.environ, **systemd.environ})
    path = config.load(str(site.config)).clientd.socket

    def is_ready() -> bool:
        with connect(path, PATIENCE_S) as channel:
            answer = channel.ask(local.StatusQuery())
        assert isinstance(answer, local.StatusAnswer)
        assert answer.status["clientd"]["ready"] == answer.ready
        return answer.ready

    def until(holds: Callable[[], bool]) -> None:
        patiently(lambda: Path(path).exists() and holds())

    until(lambda: not is_ready())
    assert not any("READY" in each for each in said_so_far(systemd))
    hold.let_go()
    systemd.wait(lambda told: "READY" in told)
    assert is_ready()
    hold.again()
    killed(hold, clientd)
    until(lambda: not is_ready())
    hold.let_go()
    until(is_ready)


PLACES = """
import dataclasses, sys
from tarazu.config import Settings
from tarazu.daemons.mdsd.batch import BatchPart
from tarazu.daemons.mdsd.placing import Placing
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.wire.messages import AllocationRequest, FileSpec
from tests.daemons.mdsd.test_batch import VIEW, ask

placing = Placing()
settings = Settings().allocate
placing.start(settings)
print("ready", file=sys.stderr, flush=True)
for least_gain in (settings.least_gain, -1.0):
    now = dataclasses.replace(settings, least_gain=least_gain)
    for request in (ask("alike", 16, 1), ask("wide", 3, 99), ask("waves", 12, 2, waves=3), ask("many", 400, 8)):
        placing.place(now, VIEW, [BatchPart(request, {})], 0.0)
    sizes = tuple(FileSpec((2 + n % 5) << 29, 0) for n in range(53))
    layout = Layout((Component(0, EOF, 1 << 20, 1),))
    late = Layout((Component(0, 1 << 26, 1 << 20, 1), Component(1 << 26, EOF, 1 << 20, 8)))
    asked = [
        AllocationRequest("sizes", "scratch", 1000, "", (layout,), sizes, 1.0, 60.0),
        AllocationRequest("late", "scratch", 1000, "", (late,), sizes, 1.0, 60.0),
    ]
    placing.place(now, VIEW, [BatchPart(request, {}) for request in asked], 0.0)
placing.close()
"""


def test_what_places_imports_nothing_once_it_is_ready() -> None:
    """An import that the first plan waits for would be a line of Python's own list."""
    environ = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PLACES], env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    )
    before, _, after = done.stderr.partition("\nready\n")
    assert "import time" in before
    assert after == ""
