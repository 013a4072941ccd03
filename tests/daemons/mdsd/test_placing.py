"""The process that computes allocations: mdsd answers whatever it does, and goes on without it."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.allocate.pipeline import Tarazu
from tarazu.config import Settings
from tarazu.daemons.mdsd.batch import BatchPart, Placed, Refused, place
from tarazu.daemons.mdsd.placing import Placing, _encoder, _task_of
from tarazu.model import CreateRequest
from tarazu.stats.gate import Gate
from tarazu.wire.channel import Channel
from tarazu.wire.messages import AllocationReply, ViewReply, ViewRequest
from tests.daemons.conftest import PATIENCE_S, Site, allocation
from tests.daemons.mdsd.test_batch import VIEW, ask

SETTINGS = dataclasses.replace(Settings().allocate, least_gain=-1.0)


@pytest.fixture
def placing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Placing]:
    monkeypatch.setattr("tarazu.daemons.mdsd.placing.LONGEST_S", PATIENCE_S)
    placing = Placing()
    yield placing
    placing.close()


def computing(pid: int) -> int:
    """The process in which this one has its allocations computed."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if parent == pid and b"tarazu.daemons.mdsd.placing" in words:
                return int(entry.name)
        time.sleep(0.05)
    raise AssertionError("it has no such process")


def test_it_places_as_the_policy_does_and_a_process_that_was_killed_is_replaced(placing: Placing) -> None:
    parts = [BatchPart(ask("a", files=3), {}), BatchPart(ask("wide", stripes=99), {})]
    found, refused = placing.place(SETTINGS, VIEW, parts, 1.5)
    assert isinstance(found, Placed) and found.reply.view_age_s == 1.5 and len(found.reply.osts) == 3
    assert isinstance(refused, Refused) and refused.status == "never"
    child = computing(os.getpid())
    assert os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0), "a job waits for it"
    os.kill(child, signal.SIGKILL)
    outcomes = [placing.place(SETTINGS, VIEW, parts[:1], 1.5)[0] for _ in range(2)]
    assert isinstance(outcomes[1], Placed)


def test_when_time_is_up_the_best_placement_so_far_is_taken() -> None:
    hurried = Tarazu()
    hurried.limit_s = 0.0
    files = [
        CreateRequest(f.size_bytes, r.layouts[0]) for r in (ask("a", 30), ask("b", 5, 3)) for f in r.files
    ]
    allocation = hurried.allocate(VIEW, files)
    assert all(len(set(f.osts[0])) == len(f.osts[0]) for f in allocation.files)
    assert len(allocation.files) == len(files) and allocation.ost_cost >= allocation.ost_cost_bound


@pytest.fixture
def mdsd(site: Site) -> subprocess.Popen[str]:
    process = site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["ready"] and status["file_systems"])
    return process


def test_mdsd_says_that_it_is_busy_while_it_computes_and_answers_all_else(
    site: Site, mdsd: subprocess.Popen[str]
) -> None:
    child = computing(mdsd.pid)
    os.kill(child, signal.SIGSTOP)  # no processor for it
    client, other = site.client(), site.client()
    client.submit(allocation("a1", deadline_s=3600.0))
    why, number = "", 0
    deadline = time.monotonic() + PATIENCE_S
    while not why and time.monotonic() < deadline:
        number += 1
        reply = other.request(ViewRequest(f"v{number}", "lustre"), PATIENCE_S)
        assert isinstance(reply, ViewReply) and reply.view
        why = reply.why_closed
        assert client.receive(0.1) is None  # which sends it, once there is a connection
    assert why.startswith("mdsd has computed an allocation for ")
    assert site.status()["requests"]["running"] == 1
    os.kill(child, signal.SIGCONT)
    while (answer := client.receive(PATIENCE_S)) is not None and not isinstance(answer, AllocationReply):
        pass
    assert answer.status == "allocated"


def test_a_limit_of_all_processors_never_closes_the_gate(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 1.0, 1.0)
    gate.cpu_load = gate.memory_load = 1.0
    assert gate.why_closed() == ""
    gate.cpu_limit = 0.99
    assert gate.why_closed() == "CPU at 100% of this node, limit 99%"


def test_place_is_the_same_in_the_process_and_outside(placing: Placing) -> None:
    (inside,) = placing.place(SETTINGS, VIEW, [BatchPart(ask("a", files=5), {})], 0.0)
    (outside,) = place(
        Tarazu(weights=SETTINGS.weights), VIEW, [BatchPart(ask("a", files=5), {})], SETTINGS.weights, 0.0
    )
    assert isinstance(inside, Placed) and isinstance(outside, Placed)
    assert inside.reply.osts == outside.reply.osts and inside.stripes == outside.stripes


def test_a_task_without_end_ends_with_an_mdsd_that_is_killed() -> None:
    ours, theirs = socket.socketpair()
    code = (
        "import signal\nfrom tarazu.daemons.mdsd import placing\n"
        "def place(*_):\n    print('busy', flush=True)\n    while True: signal.pause()\n"
        "placing.place = place\nplacing.main()"
    )
    command = [sys.executable, "-c", code, str(theirs.fileno())]
    with (
        ours,
        subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True) as process,
    ):
        theirs.close()
        task = _task_of(SETTINGS, VIEW, [BatchPart(ask("a"), {})], 0.0)
        Channel(ours).send_body(_encoder.encode(task))
        assert process.stdout and process.stdout.readline() == "busy\n"
        ours.close()
        assert process.wait(PATIENCE_S) == 1
