"""mdsd as a process: whatever users send, it stays small; and promises of steps that died end in time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.mdsd.per_user import QUEUE_OF_USER, REPLIES_OF_USER_BYTES
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.units import MIB
from tarazu.wire import messages
from tarazu.wire.bounds import MAX_ALIVE_IDS, MAX_CLOSED_FILES
from tarazu.wire.messages import Acknowledged, FileClosed, FileSpec, StepAlive, StepEnded
from tests.daemons.conftest import DATA, PATIENCE_S, Site, allocation, ask, patiently

pytestmark = pytest.mark.soak

LONG = bool(os.environ.get("TARAZU_SOAK"))
"""The first round of `make soak`: several times as much."""

WIDE = Layout((Component(0, EOF, 1 << 20, 5),))


def promised(status: dict[str, Any]) -> int:
    return int(status["file_systems"]["lustre"]["promised_bytes"])


@pytest.fixture
def mdsd(site: Site) -> subprocess.Popen[str]:
    """mdsd, with one ossd already seen; reports come every 0.1 s."""
    process = site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    return process


def rss_bytes(process: subprocess.Popen[str]) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


class Users:
    """Job steps of several users, some of which end well."""

    def __init__(self, client: Any) -> None:
        self.client = client
        client.resend_s = PATIENCE_S
        self.random = random.Random(1)
        self.number = 0
        self.past: list[str] = []

    def steps(self, count: int, files: int, closes: int) -> None:
        """`count` steps; each closes `closes` files beyond those it has, and so does a step of long ago."""
        for _ in range(count):
            self.number += 1
            id = f"step-{self.number}"
            specs = tuple(FileSpec(1000, 0) for _ in range(files))
            request = allocation(
                id, uid=1000 + self.number % 5, layouts=(WIDE,), files=specs, expires_s=1.5, alive_s=100.0
            )
            assert ask(self.client, request).status == "allocated"
            self.past.append(id)
            told = tuple((index, 10) for index in range(files + closes))
            before = self.random.choice(self.past)
            for about in (id, before, f"unknown-{self.number}"):
                message_id = f"m-{about}-{self.number}"
                reply = self.client.request(FileClosed(about, message_id, told), PATIENCE_S)
                assert reply == Acknowledged(message_id)
            if self.random.random() < 0.7:
                self.client.request(StepEnded(id, f"e-{id}"), PATIENCE_S)


@pytest.mark.long
def test_files_that_close_after_their_reply_was_forgotten_do_not_fill_the_memory(
    site: Site, mdsd: subprocess.Popen[str]
) -> None:
    users = Users(site.client())
    users.steps(100, files=20, closes=1000)
    before = rss_bytes(mdsd)
    users.steps(5_000 if LONG else 800, files=20, closes=1000)
    grown = rss_bytes(mdsd) - before
    # Replies are kept: some 200 bytes each here. 1,000 indices of three ids a step would be 250 MB and more.
    assert grown < (48 if LONG else 24) * MIB
    status = site.wait_status(lambda status: promised(status) == 0)
    assert status["requests"]["promises"] == 0 and status["requests"]["promised_stripes"] == 0


@pytest.mark.long
def test_replies_kept_for_resends_are_bounded_by_their_bytes(site: Site, mdsd: subprocess.Popen[str]) -> None:
    client = site.client()
    client.resend_s = PATIENCE_S
    # Many components that the forecast does not reach: a long reply with little work.
    steps = [i << 20 for i in range(100)]
    long = Layout(tuple(Component(i, i + (1 << 20), 1 << 20, 1) for i in steps), composite=True)
    files = tuple(FileSpec(1, 0) for _ in range(4_000))
    encoded = 0
    for number in range(300 if LONG else 30):
        reply = ask(client, allocation(f"n{number}", layouts=(long,), files=files, expires_s=0.1))
        assert reply.status == "allocated"
        encoded += len(messages.encode(reply))
        if number == 9:
            before = rss_bytes(mdsd)
    requests = site.status()["requests"]
    assert encoded > 1.2 * REPLIES_OF_USER_BYTES
    assert requests["kept_reply_bytes"] <= REPLIES_OF_USER_BYTES
    assert 0 < requests["kept_replies"] < number
    # The newest is still there; who asks for the oldest gets a new answer.
    assert ask(client, allocation(f"n{number}", layouts=(long,), files=files)) == reply
    assert rss_bytes(mdsd) - before < 120 * MIB


def closed_gate(site: Site) -> subprocess.Popen[str]:
    site.configure(memory_limit=0.01)
    process = site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    return process


def test_a_flood_of_one_user_waits_within_limits_and_others_get_their_turn(site: Site) -> None:
    closed_gate(site)
    crowd, other = site.client(), site.client()
    crowd.resend_s = other.resend_s = 2.0
    for number in range(QUEUE_OF_USER + 50):
        crowd.submit(allocation(f"n{number}", deadline_s=3600.0))
    refused = [crowd.receive(PATIENCE_S) for _ in range(50)]
    assert {reply.status for reply in refused} == {"declined"}
    assert f"expected at most {QUEUE_OF_USER} of one user" in refused[0].reason
    assert len({reply.id for reply in refused}) == 50
    other.submit(allocation("other", uid=2000, deadline_s=3600.0))
    status = site.wait_status(lambda status: status["requests"]["waiting"] == QUEUE_OF_USER + 1)
    assert status["requests"]["waiting_bytes"] > 0
    # The gate opens: the other's turn comes second, not last.
    site.processes[0].send_signal(signal.SIGSTOP)
    memory = site.mds_root / "proc" / "meminfo"
    memory.unlink()
    memory.write_text(
        "MemTotal: 1000 kB\nMemFree: 1000 kB\nMemAvailable: 1000 kB\nBuffers: 0 kB\nCached: 0 kB\n"
    )
    site.processes[0].send_signal(signal.SIGCONT)
    assert other.receive(PATIENCE_S).status == "allocated"
    lines = [line for line in site.audit.read_text().splitlines() if "status=allocated" in line]
    assert any("uid=2000" in line for line in lines[:2]), lines[:5]


def test_a_flood_of_closes_that_does_not_end_keeps_no_allocation_waiting(
    site: Site, mdsd: subprocess.Popen[str]
) -> None:
    """Each answer brings another one: mdsd has always some to read."""
    flood, other = site.client(), site.client()
    flood.resend_s = other.resend_s = 600.0
    ask(flood, allocation("flooded"))
    ask(other, allocation("warm"))
    told = tuple((index, 1) for index in range(300_000))
    at_once, most = 10, 500
    for number in range(at_once):
        flood.submit(FileClosed("flooded", f"m{number}", told))
    other.submit(allocation("other", uid=2000))
    sent = at_once
    while (reply := other.receive(0)) is None:
        assert sent < most, "it is answered after the flood only"
        assert flood.receive(PATIENCE_S) is not None
        flood.submit(FileClosed("flooded", f"m{sent}", told))
        sent += 1
    assert reply.status == "allocated"


def test_a_step_that_died_loses_its_promises_and_one_that_is_heard_does_not(
    site: Site, mdsd: subprocess.Popen[str]
) -> None:
    client = site.client()
    ask(client, allocation("dies", alive_s=0.001, expires_s=1e6))
    ask(client, allocation("lives", alive_s=3600.0, expires_s=1e6))
    ask(client, allocation("quiet", expires_s=1e6))
    alive = StepAlive(("lives", "nobody"), "alive")
    assert client.request(alive, PATIENCE_S) == Acknowledged("alive", ("nobody",))
    status = site.wait_status(lambda status: status["requests"]["dead_steps"] == 1)
    assert promised(status) == 32 * MIB and status["requests"]["promises"] == 2
    (line,) = (line for line in site.audit.read_text().splitlines() if "status=died" in line)
    assert 'id="dies" fs="lustre" uid=1000 bytes=16777216 silent_s=' in line
    # It was only slow: what it has open counts again.
    client.request(StepAlive(("dies",), "again"), PATIENCE_S)
    patiently(lambda: "reports again: its open files are promised again" in site.log("mdsd"))
    assert "reports again" in site.log("mdsd")


def test_closed_files_of_a_step_that_died_stay_promised_until_reports_can_show_them(site: Site) -> None:
    site.mdsd()
    site.start("ossd", "--name", "oss1", "--root", str(DATA / "oss"), "--interval", "3600")
    site.wait_status(lambda status: status["file_systems"])
    client = site.client()
    ask(client, allocation(alive_s=2.0, expires_s=1e6))
    client.request(FileClosed("a1", "m1", ((0, 4 << 20),)), PATIENCE_S)
    site.wait_status(lambda status: status["requests"]["dead_steps"] == 1 and promised(status) == 4 << 20)


@pytest.mark.long
def test_a_request_that_waits_does_not_die(site: Site) -> None:
    closed_gate(site)
    client = site.client()
    client.resend_s = PATIENCE_S
    client.submit(allocation(alive_s=2.0, deadline_s=3600.0))
    assert client.receive(4.0) is None
    status = site.status()
    assert status["requests"]["waiting"] == 1 and status["requests"]["dead_steps"] == 0


def test_what_is_too_large_is_refused_with_the_limit(site: Site, mdsd: subprocess.Popen[str]) -> None:
    client = site.client()
    client.resend_s = 5.0  # megabytes again and again would hold up a busy machine
    many = tuple(Component(i, i + 1, 1 << 16, 1) for i in range(60_000))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"id": "x" * 129}, "an id of 1 to 128 characters, found 129"),
        ({"fs_name": "x" * 300}, "a file system of at most 256 characters, found 300"),
        ({"job_id": "x" * 300}, "a job id of at most 256 characters, found 300"),
        ({"files": (FileSpec(1, 0),) * 1_000_001}, "at most 1000000 files"),
        ({"layouts": (WIDE,) * 10_001}, "at most 10000 layouts"),
        ({"layouts": (Layout(many), Layout(many))}, "at most 100000 components"),
        (
            {"layouts": (Layout((Component(0, EOF, 1 << 20, 1, pool="p" * 300),)),)},
            "layout 0: expected names",
        ),
        ({"alive_s": float("nan")}, "signs of life"),
    ]
    for number, (changes, reason) in enumerate(cases):
        reply = ask(client, allocation(**{"id": f"n{number}", **changes}))
        assert reply.status == "never" and reason in reply.reason, changes.keys()
    status = site.status()
    assert status["requests"]["kept_replies"] == 0 and status["requests"]["promises"] == 0


def test_messages_with_endless_lists_are_dropped(site: Site, mdsd: subprocess.Popen[str]) -> None:
    client = site.client()
    end = client._end
    ask(client, allocation())
    for message in (
        FileClosed("a1", "m1", ((0, 1),) * (MAX_CLOSED_FILES + 1)),
        StepAlive(("a1",) * (MAX_ALIVE_IDS + 1), "m2"),
        StepEnded("x" * 129, "m3"),
    ):
        end.socket.send(messages.encode(message))
    site.wait_status(lambda status: status["requests"]["dropped"] == 3)
    assert promised(site.status()) == 16 * MIB
