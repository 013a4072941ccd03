"""A directory of users that hangs holds up nobody."""

from __future__ import annotations

import os
import threading
import time

import pytest

from tarazu.config import users


def test_who_answers_slurm_does_not_wait_for_the_directory_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    uid, release, asked = 4_000_000, threading.Event(), []

    def hangs(uid: int) -> object:
        asked.append(uid)
        release.wait(120)
        return type("Entry", (), {"pw_name": "ann"})

    monkeypatch.setattr(users.pwd, "getpwuid", hangs)
    monkeypatch.setattr(users, "_known", {})
    assert [users.name_at_once(uid) for _ in range(20)] == [None] * 20
    assert asked == [uid]
    release.set()
    deadline = time.monotonic() + 120
    while (name := users.name_at_once(uid)) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert name == "ann"
    monkeypatch.undo()
    assert users.name_at_once(os.getuid()) == users.name_of(os.getuid())
