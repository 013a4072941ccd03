"""Whom the commands ask: on a node without clientd mdsd itself (tests/cli/top/test_top.py), or nobody."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tarazu import config
from tarazu.config import Settings
from tarazu.daemons import questions
from tarazu.daemons.asking import status_of, view_in
from tarazu.errors import Unavailable
from tarazu.model import Ost


def test_where_neither_answers_both_are_named(tmp_path: Path) -> None:
    settings = config.override(Settings(), "clientd", socket=str(tmp_path / "nobody"))
    settings = config.override(settings, "keys", directory=str(tmp_path / "keys"))
    settings = config.override(settings, "mdsd", requests="tcp://192.0.2.1:5771")
    with pytest.raises(
        Unavailable, match=r"nobody: No such file.*; and mdsd: tcp://192.*expected CURVE keys"
    ):
        status_of(settings)


def test_a_status_as_it_is_printed_is_a_view(tmp_path: Path) -> None:
    ost = msgspec.to_builtins(Ost(0, "oss0", 10, 9, 8)) | {"usable": True}
    path = tmp_path / "status.json"
    path.write_bytes(msgspec.json.encode({"mdsd": {"file_systems": {"scratch": {"osts": [ost], "qos": []}}}}))
    view = view_in(str(path))
    assert view.fs_name == "scratch" and len(view.osts) == 1


def _settings(directory: Path, *requests: str) -> Settings:
    settings = config.override(Settings(), "clientd", socket=str(directory / "nobody"))
    settings = config.override(settings, "keys", directory=str(directory / "keys"))
    return config.override(settings, "mdsd", requests=", ".join(f"tcp://{each}" for each in requests))


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"{host}:{port}"


@pytest.fixture
def free() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as once:
        return _address(once)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_without_daemons_nobody_waits_three_seconds(tmp_path: Path, free: str) -> None:
    with pytest.raises(Unavailable, match=r"; and mdsd: .*expected an mdsd that listens there within 0\.5 s"):
        status_of(_settings(tmp_path, free))


def test_without_either_mdsd_nobody_waits_three_seconds(tmp_path: Path, free: str) -> None:
    settings = _settings(tmp_path, free, free.replace("127.0.0.1", "127.0.0.2"))
    with pytest.raises(
        Unavailable, match=r"mdsd: tcp://\S+ or tcp://\S+: expected .* listens there within 0\.5 s"
    ):
        status_of(settings)


def test_an_mdsd_that_listens_gets_its_time_to_answer(
    tmp_path: Path, free: str, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "ANSWER_S", 1.0)
    monkeypatch.setattr(questions, "REACH_S", 0.9)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="expected an answer within 1 s"):
        status_of(_settings(tmp_path, _address(listening)))
    assert time.monotonic() - begin >= 1.0
