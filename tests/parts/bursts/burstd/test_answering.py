"""The Unix socket where Slurm's plugin asks: who may ask what, and what nobody can do to others."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput, ConfigError, Unavailable
from tarazu.parts.bursts.burstd import answering, asked
from tarazu.parts.bursts.burstd.answering import MOST_OF_USER, Answering
from tarazu.parts.bursts.burstd.asked import AboutAll, AboutJob, JobAnswer, Question
from tarazu.parts.bursts.burstd.asking import ask
from tests.daemons.conftest import PATIENCE_S

JOB = b'{"ask":"job","v":1,"name":"io","nodes":4}\n'


class Service:
    def __init__(self, path: Path, slurms: bool = False) -> None:
        self.path = path
        self.heard: list[tuple[Question, int]] = []
        self.slurms = slurms
        """Whether who connects is Slurm."""
        self.go_on = threading.Event()
        self.go_on.set()
        self.answering = Answering(str(path), self.answer, lambda _: self.slurms)

    def answer(self, question: Question, uid: int) -> bytes:
        self.heard.append((question, uid))
        assert self.go_on.wait(PATIENCE_S)
        if isinstance(question, AboutAll):
            raise ZeroDivisionError
        return b'{"v":1,"nodes":"n[1-4]","say":""}\n'

    def say(self, data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE_S)
            sock.connect(str(self.path))
            sock.sendall(data)
            found = b""
            while got := sock.recv(65536):
                found += got
            return found


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Nobody is slow by himself."""
    monkeypatch.setattr(answering, "SLOW_S", 3600.0)
    one = Service(tmp_path / "run" / "socket")
    yield one
    one.answering.close()
    assert not one.path.exists()


def test_a_question_is_answered_and_the_asker_known(service: Service) -> None:
    question = AboutJob(1, "io", 4, partition="p", waits=True)
    assert ask(str(service.path), question, JobAnswer, PATIENCE_S) == JobAnswer(1, "n[1-4]", "")
    assert service.heard == [(question, os.getuid())]
    assert service.answering.took.buckets()[-1][1] == 1


def test_who_says_nothing_sensible_gets_nothing_and_others_go_on(service: Service) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(MOST_OF_USER - 1)]
    for sock in silent:
        sock.connect(str(service.path))
        sock.sendall(b"{")
    for wrong in (b"\n", b"x" * 9000, b'{"ask":"job","v":2,"name":"","nodes":1}\n', JOB.replace(b"4", b"0")):
        with suppress(ConnectionError):  # closed with something unread
            assert service.say(wrong) == b""
    assert service.say(b'{"ask":"status","v":1}\n') == b""  # the answer failed
    assert service.say(JOB).endswith(b"\n")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as more:
        one.connect(str(service.path))
        more.connect(str(service.path))
        more.settimeout(PATIENCE_S)
        assert more.recv(1) == b"", "one too many of a user"
    assert service.answering.refused["too many"] == 1
    for connection in list(service.answering._open.values()):
        connection.until = 0.0
    with socket.socket(socket.AF_UNIX) as next_one:
        next_one.connect(str(service.path))
    for sock in silent:
        sock.settimeout(PATIENCE_S)
        assert sock.recv(1) == b""
        sock.close()
    assert service.say(JOB).endswith(b"\n")
    assert service.answering.refused["slow"] >= len(silent)


def test_slurms_question_waited_for_all_of_a_users(service: Service) -> None:
    service.go_on.clear()
    users = [socket.socket(socket.AF_UNIX) for _ in range(MOST_OF_USER)]
    for sock in users:
        sock.connect(str(service.path))
    while len(service.answering._open) < MOST_OF_USER:
        time.sleep(0.001)
    for sock in users:
        sock.sendall(JOB)
    while not service.heard:
        time.sleep(0.001)
    service.slurms = True
    with socket.socket(socket.AF_UNIX) as slurms:
        slurms.connect(str(service.path))
        slurms.sendall(JOB.replace(b"io", b"slurms"))
        service.go_on.set()
        slurms.settimeout(PATIENCE_S)
        assert slurms.recv(100).endswith(b"\n")
    assert [question.name for question, _ in service.heard].index("slurms") == 1  # type: ignore[union-attr]
    for sock in users:
        sock.settimeout(PATIENCE_S)
        assert sock.recv(100).endswith(b"\n")
        sock.close()


def test_a_socket_that_a_crash_left_is_replaced_and_anothers_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    first = Service(path)
    second = Service(path)
    first.answering.close()
    assert second.say(JOB).endswith(b"\n")
    second.answering.close()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"bursts\.socket"):
        Service(tmp_path / "file" / "socket")
    with pytest.raises(Unavailable, match="expected tarazu-burstd to listen"):
        ask(str(path), AboutAll(1), JobAnswer, 1.0)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.from_regex(rb'\{"ask":"(job|status)","v":[0-9]{1,3}.{0,80}\}'))
def test_whatever_is_asked_is_a_question_or_an_error(line: bytes) -> None:
    try:
        found = asked.read(line)
    except BadInput:
        return
    assert isinstance(found, AboutJob | AboutAll) and found.v == 1


def test_what_is_shown_has_nothing_that_the_plugin_cannot_read() -> None:
    assert asked.plain('a "b" \\ \n é') == "a ?b? ? ? ?"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_others_ask_only_about_their_own() -> None:
    from tarazu.parts.bursts.burstd.node_part import NodeSelection
    from tests.parts.bursts.burstd import test_nodes

    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    part = NodeSelection(test_nodes.settings(directory), lambda _: None)
    try:
        code = (
            "import socket, sys, os\nos.setuid(65534)\n"
            "for line in sys.argv[2:]:\n"
            "    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(line.encode() + b'\\n')\n"
            "    print(s.makefile().readline().strip())\n"
        )
        base = '{"ask":"job","v":1,"name":"io","nodes":4%s}'
        lines = [base % more for more in ("", ',"uid":65534,"user":"nobody"', ',"uid":0,"user":"root"')]
        lines += [base % ',"uid":65534,"user":"root"', '{"ask":"status","v":1}']
        words = [sys.executable, "-I", "-c", code, str(directory / "socket"), *lines]
        part.answer(AboutJob(1, "secret", 4), 0)
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        first, second, third, fourth, status = done.stdout.split("\n")[:5]
        assert first == second == '{"v":1,"nodes":"","say":""}' and third == fourth == ""
        assert "nobody" in status and "secret" not in status
    finally:
        part.close()
        shutil.rmtree(directory)
