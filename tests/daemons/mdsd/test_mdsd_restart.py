"""mdsd killed and started again: what it promised is still promised, what it answered is answered the same."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.mdsd.book import Book
from tarazu.store.journal import Content
from tarazu.wire import messages
from tarazu.wire.messages import AllocationReply, FileClosed, StepEnded
from tests.daemons.conftest import PATIENCE_S, Site, allocation, ask

MIB = 1 << 20


def promised(status: dict[str, Any]) -> int:
    return sum(ost["promised_bytes"] for fs in status["file_systems"].values() for ost in fs["osts"])


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def started(site: Site) -> subprocess.Popen[str]:
    process = site.mdsd()
    site.wait_status(lambda status: status["file_systems"])
    return process


@pytest.fixture
def mdsd(site: Site) -> subprocess.Popen[str]:
    site.ossd()
    return started(site)


def test_promises_and_replies_outlive_a_kill(site: Site, mdsd: subprocess.Popen[str]) -> None:
    client = site.client()
    requests = [allocation(f"a{n}", expires_s=1e5, alive_s=600.0) for n in range(4)]
    requests.append(allocation("never", files=(messages.FileSpec(1 << 50, 0),)))
    replies = [ask(client, request) for request in requests]
    client.request(FileClosed("a1", "m1", ((0, 4 * MIB),)), PATIENCE_S)
    client.request(StepEnded("a2", "m2"), PATIENCE_S)
    client.request(StepEnded("unknown", "m3"), PATIENCE_S)
    site.wait_status(lambda status: promised(status) == 40 * MIB)
    kill(mdsd)
    mdsd = started(site)
    assert promised(site.status()) == 40 * MIB
    again = [ask(client, request) for request in requests]
    assert [messages.encode(reply) for reply in again] == [messages.encode(reply) for reply in replies]
    assert [reply.status == "allocated" for reply in replies] == [True] * 4 + [False]
    assert promised(site.status()) == 40 * MIB, "a step that ended is not promised again"
    late = ask(client, allocation("unknown"))
    assert late.status == "declined" and "its job step ended" in late.reason
    # As if it had never been killed.
    client.request(StepEnded("a0", "m4"), PATIENCE_S)
    client.request(FileClosed("a3", "m5", ((0, 0), (1, 0))), PATIENCE_S)
    site.wait_status(lambda status: promised(status) == 8 * MIB)
    kill(mdsd)
    mdsd = started(site)
    assert promised(site.status()) == 8 * MIB


def test_killed_in_the_middle_of_a_crowd_nothing_answered_is_lost_or_changed(
    site: Site, mdsd: subprocess.Popen[str]
) -> None:
    """Every request is answered once, whatever the kills; what was answered is in the ledger, to the byte."""
    answers: dict[str, set[bytes]] = {}
    ended: set[str] = set()

    def user(uid: int) -> None:
        client = site.client()
        for number in range(6):
            request = allocation(f"u{uid}-{number}", uid=uid, deadline_s=60.0, expires_s=1e5)
            for _ in range(2):
                reply = ask(client, request)
                answers.setdefault(request.id, set()).add(messages.encode(reply))
            if number % 3 == 0:
                client.request(StepEnded(request.id, f"e-{request.id}"), PATIENCE_S)
                ended.add(request.id)

    users = [threading.Thread(target=user, args=(uid,)) for uid in range(3)]
    for thread in users:
        thread.start()
    process = mdsd
    for number in range(2):
        known, deadline = len(answers), time.monotonic() + PATIENCE_S
        while len(answers) < known + 3 and any(thread.is_alive() for thread in users):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.013 * number)
        kill(process)
        process = site.mdsd()
    for thread in users:
        thread.join()
    status = site.wait_status(lambda status: status["file_systems"])
    assert len(answers) == 18 and all(len(replies) == 1 for replies in answers.values())
    placed = {id for id, (data,) in answers.items() if messages.decode(data).status == "allocated"}  # type: ignore[union-attr]
    # Where mdsd was up long before its servers, it may have answered that it knows none.
    assert len(placed) > len(answers) / 2
    assert promised(status) == 16 * MIB * len(placed - ended)
    kill(process)
    book = Book.open(site.state)
    assert {id for id, _ in book.ledger.promises()} == placed - ended and not book.damages
    book.close()


def test_a_second_mdsd_on_the_same_ledger_is_refused(site: Site, mdsd: subprocess.Popen[str]) -> None:
    site.configure()
    other = site.start("mdsd", "--statistics", "tcp://127.0.0.1:*", "--requests", "tcp://127.0.0.1:*")
    assert other.wait(PATIENCE_S) == 2
    assert f"{site.state}: expected a ledger that no other process uses" in site.log("mdsd")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_under_the_ledger_declines_and_comes_back_by_itself(site: Site) -> None:
    site.state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(site.state)], check=True)
    try:
        site.ossd()
        mdsd = started(site)
        client = site.client()
        first = ask(client, allocation("a", expires_s=1e5))
        ask(client, allocation("ends", expires_s=1e5))
        filler = site.state / "filler"
        fill(filler)
        refused = declined(client)
        assert "the ledger cannot be written" in refused.reason
        assert (
            ask(client, allocation("next")).reason == "the ledger cannot be written: No space left on device"
        )
        status = site.status()["ledger"]
        assert not status["writable"] and "No space left on device" in status["trouble"]
        # What ends is free at once, and acknowledged when it is written.
        client.submit(StepEnded("ends", "m1"))
        site.wait_status(lambda status: promised(status) == 16 * MIB)
        assert ask(client, allocation("a", expires_s=1e5)) == first
        assert client.receive(0.0) is None
        filler.unlink()
        assert client.receive(PATIENCE_S) == messages.Acknowledged("m1")
        assert ask(client, allocation("after")).status == "allocated"
        assert site.status()["ledger"]["writable"]
        kill(mdsd)
        content = Content(site.state)
        numbers = [frame.first for _, frame in content.records()]
        assert numbers == sorted(set(numbers)) and not content.damages and not content.torn
        started(site)
        assert promised(site.status()) == 32 * MIB
    finally:
        site.stop()
        subprocess.run(["umount", str(site.state)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 1024):
                pass
        except OSError:
            return


def declined(client: Any) -> AllocationReply:
    """The log's last page may still take some."""
    for number in range(100):
        reply = ask(client, allocation(f"n{number}", expires_s=0.1))
        if reply.status == "declined":
            return reply
    raise AssertionError("a full disk was never noticed")
