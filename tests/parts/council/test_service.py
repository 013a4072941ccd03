"""A council on real sockets with keys: whom it listens to, whom it tells, what it survives."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.parts.council import here
from tarazu.parts.council import service as module
from tarazu.parts.council.exchange import (
    MAX_BYTES,
    AnnouncerEnd,
    Asked,
    Decided,
    Observed,
    Refused,
    TuneStatus,
)
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.parts.council.service import CouncilService
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.parts.council.group import PATIENCE_S, Group

SEEN = Observation(1.0, write=Direction(10**9, 1000))


LEVERS = ["nrs=fifo | crrn 8 | crrn 16", "max_rpcs_in_flight=4|8|16"]
"""Of a server, of a client."""


class Site:
    """A council that turns when it is told to, and ends that speak to it."""

    def __init__(self, directory: Path) -> None:
        self.group = Group(directory, interval_s=10.0, dwell_s=0.001, silent_s=3600.0)
        self.services: list[CouncilService] = []
        self.transports: list[ZmqTransport] = []

    def council(self, **own: Any) -> CouncilService:
        own = {"levers": LEVERS, **own}
        self.services.append(CouncilService(self.group.settings(**own), Wakeup()))
        return self.services[-1]

    def end(self, role: str = "oss") -> AnnouncerEnd:
        self.transports.append(ZmqTransport(curve_for(role, self.group.keys)))
        return AnnouncerEnd(self.transports[-1], self.group.address)

    def hear(self, end: AnnouncerEnd, message: Any = None) -> Any:
        """What comes next, while the council turns."""
        deadline, sent = time.monotonic() + PATIENCE_S, message is None
        while (said := end.receive()) is None:
            assert time.monotonic() < deadline
            sent = sent or end.send(message)
            self.services[-1].transport.wait(0.005)
            self.services[-1]._hear()
        return said

    def close(self) -> None:
        for transport in self.transports:
            transport.close()
        for service in self.services:
            self.end_of(service)

    def end_of(self, service: CouncilService) -> None:
        if not service.transport.context.closed:
            service.close()
            service.wakeup.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site(tmp_path)
    site.group.keep_pace(monkeypatch)
    yield site
    site.close()


def observed(host: str = "oss1", sequence: int = 1, **own: Any) -> Observed:
    own = {"group": "g", "kind": "oss", "observation": SEEN, "mode": "apply", **own}
    own = {"in_force": {"nrs": "fifo"}, **own}
    return Observed(message_id=f"{host}-{sequence}", host=host, **own)


def test_all_are_told_when_it_changes_and_each_is_answered(site: Site) -> None:
    council = site.council()
    idle, busy = site.end(), site.end()
    first = site.hear(idle, observed("idle", observation=None))
    assert isinstance(first, Decided) and (first.message_id, first.values, first.mode) == (
        "idle-1",
        {},
        "apply",
    )
    assert (first.council, first.group) == (council.name, "g")
    sequence = 1
    while (
        answer := site.hear(busy, observed("busy", sequence))
    ).generation == 0:  # it decides once it is time
        sequence += 1
    assert answer.generation == 1 and answer.message_id == f"busy-{sequence}"
    assert list(answer.values) == ["nrs"]
    pushed = site.hear(idle)
    assert (pushed.message_id, pushed.generation, pushed.values) == ("", 1, answer.values)


def test_what_is_decided_for_one_client_is_told_to_no_other(site: Site) -> None:
    """An announcer of any version: what it is told is its own."""
    council = site.council()
    one, other = site.end("client"), site.end("client")
    site.hear(other, observed("other", kind="client"))
    in_force = {"max_rpcs_in_flight": "2"}  # as none of the values
    for sequence in range(1, 100):  # what it has is looked at first
        answer = site.hear(one, observed("one", sequence, kind="client", in_force=in_force))
        if answer.values:
            break
        time.sleep(0.002)
    assert answer.generation >= 1 and list(answer.values) == ["max_rpcs_in_flight"]
    assert site.hear(other, observed("other", 2, kind="client", observation=None)).values == {}
    nodes = council._how(0.0)["nodes"]
    assert nodes["one"]["decided"] == answer.values and nodes["other"]["decided"] == {}
    council.council.set_mode("observe", time.monotonic(), "a test")
    council._decide(time.monotonic())
    pushed = {end: site.hear(end) for end in (one, other)}
    assert all(said.mode == "observe" and said.values == {} for said in pushed.values())
    assert pushed[one].generation > answer.generation


@pytest.mark.parametrize(
    ("role", "own", "why"),
    [
        ("oss", {"group": "other"}, "expected the group g, found other"),
        ("client", {}, "expected the key of role oss"),
        ("server", {}, "expected the key of role oss"),
    ],
    ids=["group", "client", "server"],
)
def test_who_is_refused_is_told_and_it_is_said_once(
    site: Site, caplog: pytest.LogCaptureFixture, role: str, own: dict[str, Any], why: str
) -> None:
    council, end = site.council(), site.end(role)
    for sequence in (1, 2):
        said = site.hear(end, observed(sequence=sequence, **own))
        assert isinstance(said, Refused) and said.why.startswith(why)
    lines = [r.getMessage() for r in caplog.records if "are refused: " in r.getMessage()]
    assert len(lines) == 1 and why in lines[0] and council.refused == 2 and not council.council.group._hosts


def test_one_that_has_hung_up_leaves_its_name_to_the_next(site: Site) -> None:
    site.council()
    first, second = site.end(), site.end()
    site.hear(first, observed())
    assert isinstance(site.hear(second, observed()), Refused)
    site.transports[0].close()
    deadline = time.monotonic() + PATIENCE_S
    while not isinstance(said := site.hear(second, observed()), Decided):
        assert time.monotonic() < deadline, said


def test_what_is_too_large_or_no_message_is_dropped_and_nobody_minds(site: Site) -> None:
    council, end = site.council(), site.end()
    site.hear(end, observed())
    end._end.socket.send(b"\x00nonsense")
    end._end.socket.send(bytes(2 * MAX_BYTES))
    other = site.end()
    assert isinstance(site.hear(other, observed("oss2")), Decided)
    assert council.end.counts.dropped == 1 and len(council.council.group._hosts) == 2


def test_knowledge_that_is_none_is_set_aside(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    knowledge = site.group.knowledge
    knowledge.mkdir(parents=True)
    (knowledge / "knowledge.json").write_bytes(b'{"format": 1, "half')
    council = site.council()
    assert (knowledge / "unreadable.json").exists() and not (knowledge / "knowledge.json").exists()
    assert [r for r in caplog.records if r.levelno == logging.ERROR and "renamed to" in r.getMessage()]
    council._save()
    site.end_of(council)
    assert (knowledge / "knowledge.json").exists()
    caplog.clear()
    site.council()
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_an_order_counts_at_once_and_one_that_cannot_be_read_is_observe(site: Site) -> None:
    council, end = site.council(), site.end()
    settings = site.group.settings()
    site.hear(end, observed())
    assert council.council.mode == "apply"
    here.set_mode(settings, "advise", "a trial" + "!" * 1000)
    council._look(time.monotonic())
    told = site.hear(end)
    assert (told.mode, told.generation) == ("advise", 1) and "a trial!" in told.why
    here.set_mode(settings, "apply", "")
    council._look(time.monotonic())
    (site.group.knowledge / "mode").write_bytes(b"\x00")
    council._look(time.monotonic())
    assert council.council.mode == "observe"


def test_advise_says_what_would_be_decided(site: Site) -> None:
    site.council(mode="advise")
    end = site.end()
    site.hear(end, observed(mode="observe"))
    site.services[-1]._look(time.monotonic())
    said = site.hear(end, observed(sequence=2, mode="observe"))
    assert (said.mode, said.values) == ("advise", {"nrs": "fifo"})


@pytest.mark.skipif(os.geteuid() != 0, reason="the stop file is root's")
def test_the_sites_stop_file_is_observe(site: Site, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.write_text("maintenance\n")
    settings = site.group.settings()
    stopped = config.override(settings, "run", stop_file=str(stop))
    service = CouncilService(stopped, Wakeup())
    site.services.append(service)
    assert service.council.mode == "observe" and "maintenance" in service.why_mode


def test_how_it_is_comes_over_the_wire_and_into_its_figures(site: Site) -> None:
    council, end = site.council(), site.end()
    for sequence in (1, 2, 3):
        site.hear(end, observed(sequence=sequence))
        time.sleep(0.002)
    told = site.hear(site.end("client"), Asked("how"))
    assert isinstance(told, TuneStatus) and told.message_id == "how"
    assert told.status["nodes"]["oss1"]["in_force"] == {"nrs": "fifo"}
    assert told.status["learned"][0]["value"] == "fifo" and told.status["learned"][0]["seen"] > 0
    values = {family.name: family.samples.get(()) for family in council.figures()}
    assert values["council_nodes"] == 1 and values["council_mode"] == 2


def test_who_asks_how_it_is_again_and_again_is_answered_now_and_then(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    council, end = site.council(), site.end()
    monkeypatch.setattr(module, "TELL_AGAIN_S", 3600.0)
    assert isinstance(site.hear(end, Asked("one")), TuneStatus)
    for _ in range(100):
        end.send(Asked("more"))
    assert isinstance(said := site.hear(end, observed()), Decided) and said.message_id == "oss1-1"
    assert council.end.counts.received > 2


def test_a_disk_that_takes_nothing_stops_nobody(site: Site, tmp_path: Path) -> None:
    council, end = site.council(), site.end()
    (tmp_path / "file").write_text("")
    council.kept.directory = tmp_path / "file"
    council._save()
    deadline = time.monotonic() + PATIENCE_S
    while not council.writer.trouble:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert isinstance(site.hear(end, observed()), Decided)
