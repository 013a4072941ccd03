"""What a first day must not leave behind is seen."""

from __future__ import annotations

import pytest
import traces


def test_what_was_left_is_said_and_what_is_missing_too() -> None:
    before = {"files": {"/etc/passwd f"}, "users": {"root"}}
    assert traces.left(before, before) == []
    after = {"files": {"/etc/tarazu d"}, "users": {"root", "tarazu"}}
    assert traces.left(before, after) == [
        "files: + /etc/tarazu d",
        "files: - /etc/passwd f",
        "users: + tarazu",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/var/lib/tarazu/x",
        "/etc/tarazu",
        "/run/tarazu/clientd.sock",
        "/dev/shm/tarazu-1000",
        "/usr/lib/tarazu",
    ],
)
def test_nothing_of_ours_is_forgotten(path: str) -> None:
    assert not traces.FORGOTTEN.match(f"{path} f 644 0:0 1")
