"""The Unix socket where Slurm's plugin asks: who may ask, and what nobody can do to others."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import BadInput, ConfigError
from tarazu.parts.bursts.burstd import answering
from tarazu.parts.bursts.burstd.answering import AboutJob, Answering, JobAnswer
from tests.daemons.conftest import PATIENCE_S

JOB = b'{"ask":"job","v":1,"name":"io","nodes":4,"uid":1000,"user":"ann"}\n'
ANSWERED = b'{"v":1,"nodes":"n[1-4]","say":""}\n'


class Service:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[AboutJob] = []
        self.slurms = True
        """Whether who connects is Slurm."""
        self.answering = Answering(str(path), self.answer, lambda _: self.slurms)

    def answer(self, question: AboutJob) -> JobAnswer:
        self.heard.append(question)
        if question.name == "wrong":
            raise ZeroDivisionError
        return JobAnswer(1, "n[1-4]", "")

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
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "run" / "socket")
    yield one
    one.answering.close()
    assert not one.path.exists()


def test_a_question_is_answered(service: Service) -> None:
    assert service.say(JOB) == ANSWERED
    assert service.heard == [AboutJob(1, "io", 4, 1000, "ann")]


def test_who_says_nothing_sensible_gets_nothing_and_others_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "SLOW_S", 0.05)
    for wrong in (b"\n", b"x" * 9000, JOB.replace(b'"v":1', b'"v":2'), JOB.replace(b"4", b"0")):
        with suppress(ConnectionError):  # closed with something unread
            assert service.say(wrong) == b""
    assert service.say(JOB.replace(b"io", b"wrong")) == b"", "the answer failed"
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(service.path))
        slow.sendall(b"{")
        assert service.say(JOB) == ANSWERED
        slow.settimeout(PATIENCE_S)
        assert slow.recv(1) == b""
    assert service.answering.refused == 6


def test_only_slurm_is_answered(service: Service) -> None:
    service.slurms = False
    with suppress(ConnectionError):
        assert service.say(JOB) == b""
    assert not service.heard


def test_a_socket_that_a_crash_left_is_replaced_and_anothers_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    first = Service(path)
    second = Service(path)
    first.answering.close()
    assert second.say(JOB) == ANSWERED
    second.answering.close()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"bursts\.socket"):
        Service(tmp_path / "file" / "socket")
    assert not os.path.exists(path)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.from_regex(rb'\{"ask":"(job|status)","v":[0-9]{1,3}.{0,80}\}'))
def test_whatever_is_asked_is_a_question_or_an_error(line: bytes) -> None:
    try:
        found = answering.read(line)
    except BadInput:
        return
    assert isinstance(found, AboutJob) and found.v == 1


def test_what_is_shown_has_nothing_that_the_plugin_cannot_read() -> None:
    assert answering.plain('a "b" \\ \n é') == "a ?b? ? ? ?"
