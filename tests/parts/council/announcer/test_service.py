"""Announcers and a council as they run: what is decided is set, and what was there comes back, whatever dies."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.parts.changes import here as node
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.by_hand import undo_agent
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.parts.changes.model.outcome import Gave
from tarazu.parts.council import exchange, here
from tarazu.parts.council import service as council_service
from tarazu.parts.council.agent import agent_of
from tarazu.parts.council.announcer import service, start
from tarazu.parts.council.announcer.service import Announcer
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.parts.council.service import CouncilService
from tests.parts.council.group import BEFORE, PATIENCE_S, Client, Group

VALUES = ("4", "8", "16")
Make = Callable[..., Group]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[Group] = []

    def make(**tune: Any) -> Group:
        made.append(Group(tmp_path, **tune))
        made[-1].keep_pace(monkeypatch)
        return made[-1]

    yield make
    for group in made:
        group.close()


def left_by_a_former_run(settings: config.Settings) -> None:
    """As an announcer leaves it that is killed."""
    change = Change(lever="max_rpcs_in_flight", target="", wanted={ALL: "16"}, asked_by="council mds1")
    assert agent_of(settings).follow(Plan((change,)), "apply", "").set


class Pair:
    """An announcer and a council in this process, which turn when they are told to, on the test's own clock."""

    def __init__(self, group: Group, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.group, self.client = group, client
        self.now = 1e6
        clock = types.SimpleNamespace(**{**vars(time), "monotonic": lambda: self.now})
        for module in (service, council_service):
            monkeypatch.setattr(module, "time", clock)
        group.here(client)
        self.council: CouncilService | None = None
        self.announcer = Announcer(
            config.load(str(group.configuration(client.name, client.root))), Wakeup(), "client", client.name
        )

    def begin(self, name: str, **own: Any) -> None:
        """The council of this name is the one at the address."""
        self.end()
        self.council = CouncilService(self.group.settings(**own), Wakeup())
        self.council.name = name

    def end(self) -> None:
        if self.council:
            self.council.close()
            self.council.wakeup.close()
            self.council = None

    def until(self, holds: Callable[[], object]) -> None:
        """Intervals pass; a council that is there is heard in each."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self.now += exchange.INTERVAL_S
            self.client.write(100)
            told, again = self.announcer.sequence, time.monotonic() + 1.0
            self.announcer._tick(self.now)
            while not self._turn() and self.council and self.announcer.sequence > told:
                assert time.monotonic() < deadline
                if self.announcer.unsent or time.monotonic() > again:  # it goes to a council that is no more
                    self.announcer.unsent, again = 0, time.monotonic() + 1.0
                    self.announcer._tell(None, self.now)
            assert time.monotonic() < deadline

    def _turn(self) -> bool:
        """Whether the announcer has heard something."""
        heard = False
        self.announcer.transport.wait(0.01)
        if self.council:
            self.council._hear()
            self.council._look(self.now)
            self.council._decide(self.now)
        while said := self.announcer.end.receive():
            self.announcer._heard(said, self.now)
            heard = True
        return heard

    def close(self) -> None:
        self.end()
        self.announcer.close()
        self.announcer.wakeup.close()


@pytest.fixture
def pair(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    pair = Pair(make(worse=1.0, dwell_s=0.1, silent_s=0.5), Client(tmp_path, "login1"), monkeypatch)
    yield pair
    pair.close()


def test_of_two_councils_the_first_is_followed_until_it_is_silent(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    client, following = pair.client, pair.announcer.following
    pair.begin("mds1", var="one")
    pair.until(lambda: client.in_force in VALUES)
    pair.begin("mds2", var="two")
    pair.until(lambda: following.refused)
    assert following.council == "mds1" and client.in_force in VALUES
    pair.until(lambda: following.council == "mds2")
    audit = [r.getMessage() for r in caplog.records]
    assert any("a decision of mds2 is not followed" in line for line in audit)
    pair.until(lambda: client.in_force in VALUES)


def test_what_a_node_sees_is_measured_for_what_is_set_there_by_who_promises_nothing(pair: Pair) -> None:
    """What a learner's values gave was never looked at."""
    pair.begin("mds1")
    pair.until(lambda: pair.client.in_force in VALUES)
    (held,) = pair.announcer.agent.store.held_changes.values()
    assert held.gave == Gave("time")
    (hours,) = pair.announcer.agent.store.measures().values()
    ((seconds, size),) = hours.sums.values()
    assert seconds > 0.0 and size == pytest.approx(100 / 1024)
    crowded = [
        Observation(1.0, write=Direction(1 << 20, 1), demand=demand).is_crowded for demand in (0, 1, 2)
    ]
    assert crowded == [True, False, True], "with one request at a time he sets the pace who asks"


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_the_node_alone_can_say_no(pair: Pair, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pair.begin("mds1")
    pair.until(lambda: pair.client.in_force in VALUES)
    # As after SIGHUP.
    pair.announcer.take_over(config.override(pair.announcer.settings, "part.council", mode=mode))
    pair.announcer._follow(pair.now, anew=True)
    assert pair.client.in_force == BEFORE and f"part.council.mode is {mode}" in caplog.text
    assert pair.council
    pair.until(lambda: pair.council and pair.council.nodes.of["login1"].mode == mode)
    assert pair.council.council.group.active == 0 or mode != "observe"


def test_undo_here_holds_without_a_word_of_the_council(pair: Pair) -> None:
    pair.begin("mds1")
    pair.until(lambda: pair.client.in_force in VALUES)
    settings = config.load(str(pair.group.configuration("login1", pair.client.root)))
    each = node.agent_named(settings, "parameters")
    done = undo_agent(each, "tarazu change tune --undo", lambda _: True, lambda _: None)
    assert [held.change.lever for held in done.restored] == ["max_rpcs_in_flight"]
    assert pair.client.in_force == BEFORE
    told = pair.announcer.sequence
    pair.until(lambda: pair.announcer.sequence > told + 3)
    assert pair.client.in_force == BEFORE and pair.announcer.mode == "observe"
    agent_of(settings).resume()
    pair.until(lambda: pair.client.in_force in VALUES)


def test_a_lever_that_fails_is_said_to_the_council_and_what_was_there_stays(pair: Pair) -> None:
    (pair.client.root / "sys/fs/lustre/osc").rename(pair.client.root / "osc")
    pair.group.lctl.write_text("#!/bin/sh\necho 'error: set_param: Invalid argument' >&2; exit 22\n")
    (pair.client.root / "osc").rename(pair.client.root / "sys/fs/lustre/osc")
    pair.begin("mds1")
    pair.until(lambda: pair.announcer.problem)
    assert pair.client.in_force == BEFORE
    pair.until(lambda: pair.council and (o := pair.council.nodes.of["login1"].observed) and o.problem)


def test_an_announcer_that_cannot_begin_restores_what_was_left(make: Make, tmp_path: Path) -> None:
    group, client = make(), Client(tmp_path, "login1")
    settings = config.load(str(group.configuration("login1", client.root)))
    group.here(client)
    left_by_a_former_run(settings)
    assert client.in_force == "16"
    (group.keys / "client.key").unlink()
    path = group.configuration("login1", client.root)
    assert start.main(["--config", str(path), "--kind", "client"]) != 0
    assert client.in_force == BEFORE


def test_what_was_left_is_restored_before_anything_that_takes_long_is_loaded(
    make: Make, tmp_path: Path
) -> None:
    """With a fifth of a processor that takes half a minute."""
    group, client = make(), Client(tmp_path, "login1")
    path = group.configuration("login1", client.root)
    group.here(client)
    left_by_a_former_run(config.load(str(path)))
    program = (
        "import sys\n"
        "class Nothing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('zmq', 'numpy') or name == 'tarazu.parts.council.announcer.service':\n"
        "            raise SystemExit('loads ' + name)\n"
        "sys.meta_path.insert(0, Nothing())\n"
        "from tarazu.parts.council.announcer import start\n"
        f"start.main(['--config', {str(path)!r}, '--kind', 'client'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "loads tarazu.parts.council.announcer.service" in done.stderr
    assert client.in_force == BEFORE


def test_of_two_announcers_on_a_node_the_second_waits(pair: Pair) -> None:
    pair.begin("mds1")
    pair.until(lambda: pair.client.in_force in VALUES)
    second = Announcer(
        config.load(str(pair.group.configuration("login1", pair.client.root))), Wakeup(), "client", "login1"
    )
    for _ in range(3):
        second._tick(pair.now)
    assert second.sequence == 0 and second.mode == "observe"
    second.close()
    second.wakeup.close()


def test_what_is_decided_is_set_and_comes_back_whatever_dies(make: Make, tmp_path: Path) -> None:
    group = make(worse=1.0, silent_s=3600.0)  # this I/O says nothing of values
    clients = [Client(tmp_path, f"login{n}") for n in (1, 2)]
    council = group.council()
    announcers = [group.announcer(clients[0])]
    group.pace["SILENT_S"] = 2.0  # now and then, on a busy machine, its council is silent
    announcers.append(group.announcer(clients[1]))

    def all_in(values: tuple[str, ...]) -> bool:
        return all(client.in_force in values for client in clients)

    group.until(lambda: all_in(VALUES), *clients)
    group.until(lambda: group.status()["learned"], *clients)
    status = group.status()
    assert set(status["nodes"]) == {"login1", "login2"}
    assert all(node["decided"] and node["why"] for node in status["nodes"].values()) and status["keys"]

    # An announcer that is killed leaves its note; its next start restores before it follows anybody.
    def states() -> list[str]:
        (listed,) = node.listed(group.settings(clients[0].root, var="login1"), "parameters")
        return [one.state for one in listed.changes]

    # Values go round while it learns; a moment after the value its note says so.
    group.until(lambda: states() == ["set"], *clients)
    group.kill(announcers[0])
    assert states() in (["set"], ["being changed"]), "what it has set is still noted"
    group.pace["SILENT_S"] = 3600.0
    announcers[0] = group.announcer(clients[0])
    group.until(lambda: "left by a former run" in group.log("login1"), *clients)
    group.until(lambda: all_in(VALUES), *clients)

    # A council that is killed is silent, as long as each waits: the next one continues from what was learned.
    settings = group.settings()
    group.until(lambda: (found := here.here(settings)) and found.learned, *clients)
    group.kill(council)
    on_disk = here.here(settings)
    assert on_disk is not None and not on_disk.unread
    group.until(lambda: "does not answer for 2 s" in group.log("login2"), *clients)
    group.until(lambda: clients[1].in_force == BEFORE, *clients)
    council = group.council()
    group.until(lambda: all_in(VALUES), *clients)
    assert "continues from what was learned" in group.log("council")
    seen = {(row["node"], row["pattern"], row["value"]): row["seen"] for row in group.status()["learned"]}
    assert all(
        seen[row["node"], row["pattern"], row["value"]] >= 0.9 * row["seen"] for row in on_disk.learned
    )

    # Ordered: all is restored at once, and stays so.
    assert here.set_mode(group.settings(), "observe", "tarazu change tune --undo") == "apply"
    group.until(lambda: all_in((BEFORE,)), *clients)
    group.until(lambda: group.status()["mode"] == "observe")
    here.set_mode(group.settings(), "apply", "again")
    group.until(lambda: all_in(VALUES), *clients)
    group.end(announcers[1])
    assert clients[1].in_force == BEFORE
    group.until(lambda: clients[0].in_force in VALUES, clients[0])

    # Settings are read again.
    group.configuration("login1", clients[0].root, mode="advise")
    announcers[0].send_signal(signal.SIGHUP)
    group.until(lambda: clients[0].in_force == BEFORE)
    group.until(lambda: "part.council.mode is advise" in group.log("login1"))
    group.end(council)
    assert "Traceback" not in group.log("council") + group.log("login1") + group.log("login2")
