"""Many who ask a real clientd, with a real mdsd behind it: all get their plan, nobody is hung up on."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarazu import errors
from tarazu.daemons.clientd import service as clientd
from tarazu.model import JobStep
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.wire import local
from tarazu.wire.channel import Channel, connect
from tests.daemons.conftest import Site

ALICE, BOB = 12345, 12346
OSTS = (0, 1, 2, 3, 4)
PATIENCE_S = 300.0
PATIENT = {
    "daemons.clientd.service.REQUEST_S": 3600.0,
    "daemons.clientd.service.CONVERSATION_S": 3600.0,
    "daemons.clientd.service.EXCHANGE_S": 3600.0,
    "daemons.questions.ALLOCATION_S": 3600.0,
    "daemons.questions.ANSWER_S": 600.0,
}
"""clientd hangs up on nobody for being slow, nor does it do without an answer."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to come as other users")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """mdsd, an OSS and clientd."""
    site = Site(tmp_path_factory.mktemp("crowd"))
    run = site.directory / "run"
    run.mkdir(mode=0o755)
    text = f"[clientd]\nsocket = '{run}/clientd.sock'\ndatabase = '{site.directory}/interaction.db'\n"
    text += "[layout]\nmin_size = 0\n"
    site.config.write_text(site.config.read_text() + text)
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    site.start("clientd", constants=PATIENT)
    yield site
    site.stop()


@pytest.fixture
def crowded(crowd: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The working directory is that of clientd's socket, which all users reach."""
    monkeypatch.chdir(crowd.directory / "run")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(errors.Unavailable):
            if status()["clientd"]["ready"]:
                break
        assert time.monotonic() < deadline, crowd.log("clientd")
        time.sleep(0.1)
    return crowd


def connect_as(uid: int = 0, timeout_s: float = PATIENCE_S) -> Channel:
    """A conversation as that user: the socket keeps whose credentials it was connected with."""
    os.seteuid(uid)
    try:
        return connect("clientd.sock", timeout_s)
    finally:
        os.seteuid(0)


def status() -> dict[str, dict[str, object]]:
    with connect("clientd.sock", PATIENCE_S) as channel:
        answer = channel.ask(local.StatusQuery())
    assert isinstance(answer, local.StatusAnswer)
    return answer.status  # type: ignore[return-value]


def history(application: str) -> int:
    """A descriptor of a run with two files."""
    step = JobStep("lustre", ALICE, application, "1")
    files = tuple(FileRecord(f"/{n}", f"/{n}", "/{n}", 0, (0,), 0, n, 0.1 * n, 8 << 20) for n in range(2))
    with tempfile.TemporaryFile() as file:
        file.write(encode_run(RunRecord(step, 1.0, 2.0, "light", files, 1, 1, 1)))
        file.flush()
        file.seek(0)
        return os.dup(file.fileno())


def plan(channel: Channel, application: str) -> local.LocalMessage:
    """As a leader asks."""
    step = JobStep("lustre", ALICE, application, "2")
    descriptor = history(application)
    try:
        answer = channel.ask(local.PlanRequest(step, 1, OSTS, OSTS), [descriptor])
    finally:
        os.close(descriptor)
    if isinstance(answer, local.DirectoriesWanted):
        answer = channel.ask(local.DirectoryLayouts(b"", {}))
    return answer


@as_root
def test_64_simultaneous_steps_of_one_user_all_get_their_plan(crowded: Site) -> None:
    channels = [connect_as(ALICE) for _ in range(64)]
    plans: list[local.PlanReply] = []
    turned_away: list[float] = []

    def lead(number: int, channel: Channel) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                with channel:
                    answer = plan(channel, f"step{number}")
            except errors.Busy as busy:
                turned_away.append(busy.retry_after_s)
                time.sleep(busy.retry_after_s)
                channel = connect("clientd.sock", PATIENCE_S)
                continue
            assert isinstance(answer, local.PlanReply)
            plans.append(answer)
            return

    threads = [threading.Thread(target=lead, args=each) for each in enumerate(channels)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(plans) == 64, (len(plans), turned_away, crowded.log("clientd")[-2000:])
    assert {p.status for p in plans} == {"planned"}, crowded.log("clientd")[-2000:]
    assert len({p.request_id for p in plans}) == 64 and all(len(p.files) == 2 for p in plans)


@as_root
def test_a_full_clientd_says_busy_and_serves_the_next_user(crowded: Site) -> None:
    before = status()["clientd"]["turned_away"]
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect_as(ALICE)) for _ in range(clientd.MAX_CONVERSATIONS // 2 + 8)]
        with pytest.raises(errors.Busy) as refusal:
            silent[-1].ask(local.StatusQuery())
        assert 0 < refusal.value.retry_after_s < 60
        with connect_as(BOB) as channel:
            answer = plan(channel, "bobs")
        assert isinstance(answer, local.PlanReply) and answer.status == "planned"
        assert status()["clientd"]["turned_away"] >= before + 8  # type: ignore[operator]


@as_root
@pytest.mark.long
def test_a_user_who_never_answers_does_not_hold_all_turns(crowded: Site) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(32):
            channel, descriptor = stack.enter_context(connect_as(ALICE)), history("held")
            step = JobStep("lustre", ALICE, f"held{number}", "3")
            channel.send(local.PlanRequest(step, 1, OSTS, OSTS), [descriptor])
            os.close(descriptor)
        with connect_as(BOB) as channel:
            answer = plan(channel, "free")
        assert isinstance(answer, local.PlanReply) and answer.status == "planned"


@as_root
def test_descriptors_and_frames_that_are_sent_in_masses_are_bounded(crowded: Site) -> None:
    pid = crowded.started["clientd"][0].pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    flooded: list[Channel] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(64):
            channel = connect_as(ALICE)
            flooded.append(channel)
            for _ in range(3):  # a header byte at a time, each with as many descriptors as may be
                with contextlib.suppress(OSError):
                    socket.send_fds(channel._socket, [b"\0"], [file.fileno()] * local.MAX_DESCRIPTORS)
    held = max(_descriptors(pid) for _ in range(20))
    assert held - before < 64 * (local.MAX_DESCRIPTORS + 1) + 64, (before, held)
    big = connect_as(ALICE)
    with contextlib.suppress(OSError):
        big._socket.sendall(struct.pack("<I", local.MAX_REQUEST_BYTES + 1) + bytes(1 << 16))
    with big, pytest.raises(errors.Unavailable, match="frame of at most"):
        answer = big.receive()
        raise errors.Unavailable(getattr(answer, "reason", str(answer)))
    with connect_as(BOB) as channel:
        assert isinstance(plan(channel, "after"), local.PlanReply)
    for channel in flooded:
        channel.close()
    _until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < before + 50)


def _descriptors(pid: int) -> int:
    time.sleep(0.02)
    return len(os.listdir(f"/proc/{pid}/fd"))


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_plan_whose_leader_is_gone_promises_nothing(crowded: Site) -> None:
    before = crowded.status()["requests"]
    channel = connect("clientd.sock", PATIENCE_S)
    descriptor = history("gone")
    answer = channel.ask(local.PlanRequest(JobStep("lustre", 0, "gone", "4"), 1, OSTS, OSTS), [descriptor])
    os.close(descriptor)
    assert isinstance(answer, local.DirectoriesWanted)
    channel.send(local.DirectoryLayouts(b"", {}))
    channel.close()
    allocated = before["answers"].get("allocated", 0)
    crowded.wait_status(lambda s: s["requests"]["answers"].get("allocated", 0) > allocated)
    crowded.wait_status(lambda s: s["requests"]["promises"] <= before["promises"])


def test_a_connection_to_a_full_backlog_does_not_block(tmp_path: Path) -> None:
    path = str(tmp_path / "full.sock")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(path)
        listener.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(path)
        with pytest.raises(errors.Unavailable, match="backlog"):
            connect(path, 0.3)
        # It is waited for: somebody who accepts in time is spoken to.
        taker = threading.Timer(0.2, lambda: [listener.accept()[0].close() for _ in range(2)])
        taker.start()
        connect(path, PATIENCE_S).close()
        taker.join()


def test_a_conversation_ends_at_its_deadline_also_while_sending() -> None:
    here, there = socket.socketpair()
    with there, Channel(here, deadline_s=0.3) as channel, pytest.raises(errors.Unavailable):
        channel.send(local.DirectoryLayouts(bytes(64 << 20), {}))
