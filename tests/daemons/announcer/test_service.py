"""Announcers and a council as they run: what is decided is set, and what was there comes back, whatever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.council import here
from tarazu.daemons.levers import keeper
from tests.daemons.tuning import BEFORE, Client, Group

VALUES = ("4", "8", "16")
Make = Callable[..., Group]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Group] = []

    def make(**tune: Any) -> Group:
        made.append(Group(tmp_path, **tune))
        return made[-1]

    yield make
    for group in made:
        group.close()


def test_what_is_decided_is_set_and_comes_back_whatever_dies(make: Make, tmp_path: Path) -> None:
    group = make(worse=1.0)  # this I/O says nothing of values
    clients = [Client(tmp_path, f"login{n}") for n in (1, 2)]
    council = group.council()
    announcers = [group.announcer(client) for client in clients]

    def all_in(values: tuple[str, ...]) -> bool:
        return all(client.in_force in values for client in clients)

    group.until(lambda: all_in(VALUES), *clients)
    group.until(lambda: group.status()["learned"], *clients)
    status = group.status()
    assert set(status["nodes"]) == {"login1", "login2"}
    assert status["decision"]["values"] and status["keys"]

    # An announcer that is killed leaves its note; its next start restores before it follows anybody.
    group.kill(announcers[0])
    assert (
        keeper.set_here(group.settings(clients[0].root, state=str(tmp_path / "login1.state")))
        .levers[0]
        .set_to
    )
    announcers[0] = group.announcer(clients[0])
    group.until(lambda: "left by a former run" in group.log("login1"), *clients)
    group.until(lambda: all_in(VALUES), *clients)

    # A council that is killed is silent: all is restored; the next one goes on from what was learned.
    settings = group.settings()
    group.until(lambda: (found := here.here(settings)) and found.learned, *clients)
    group.kill(council)
    on_disk = here.here(settings)
    assert on_disk is not None and not on_disk.unread and on_disk.status["group"] == "g"
    group.until(lambda: all_in((BEFORE,)), *clients)
    assert "is silent for 0.9 s" in group.log("login2")
    council = group.council()
    group.until(lambda: all_in(VALUES), *clients)
    assert "goes on from what was learned" in group.log("council")
    seen = {(row["pattern"], row["value"]): row["seen"] for row in group.status()["learned"]}
    assert all(seen[row["pattern"], row["value"]] >= row["seen"] for row in on_disk.learned)

    # Ordered: all is restored at once, and stays so.
    assert here.set_mode(group.settings(), "observe", "tarazu tune --undo") == "apply"
    group.until(lambda: all_in((BEFORE,)), *clients)
    assert group.status()["mode"] == "observe" and "tarazu tune --undo" in group.log("login1")
    here.set_mode(group.settings(), "apply", "again")
    group.until(lambda: all_in(VALUES), *clients)
    group.end(announcers[1])
    assert clients[1].in_force == BEFORE and clients[0].in_force in VALUES
    group.end(council)
    assert "Traceback" not in group.log("council") + group.log("login1") + group.log("login2")
