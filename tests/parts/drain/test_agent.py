"""Drained OSTs: what is set, that only that is undone, that notes are trusted for nothing, and that it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.errors import Unavailable
from tarazu.model import Ost
from tarazu.parts.changes import by_hand
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.by_hand import Undone, undo_agent
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.here import Listed, NodeAgent
from tarazu.parts.changes.here import listed as listed_here
from tarazu.parts.changes.model.goals import refusal
from tarazu.parts.changes.now import with_now
from tarazu.parts.changes.settings import directory_of
from tarazu.parts.changes.trail import read
from tarazu.parts.drain import agent as drains
from tarazu.parts.drain.choosing import DEFAULT, Candidate
from tarazu.sim.testbed import lctl as stand_in
from tests.parts.changes.case import Here
from tests.parts.changes.parameters import wish
from tests.parts.drain.lever_case import OSP, OSTS, DrainCase

ZERO, TEN = OSTS


class Server(DrainCase):
    def drains(self) -> Agent:
        agent = drains.agent_of(self.settings, root=str(self.root))
        agent.engine.levers["drain"].lctl.program = Here("lctl", stand_in.main, self.root)  # type: ignore[attr-defined]
        return agent

    def apply(self, *candidates: Candidate, fs_name: str = "lustre") -> Done:
        here = drains.here(self.root, DEFAULT)
        return drains.apply(self.drains(), drains.plan_of(fs_name, candidates, here, 0.1))

    def undo(self, *osts: int) -> Undone:
        agent = self.drains()
        each = NodeAgent("drains", "", agent.store, agent)
        done = undo_agent(each, "undo", drains.of(osts=osts), lambda _: None, hold=False)
        drains.tell(agent, ())
        return done

    @property
    def notes(self) -> Path:
        return Path(f"{self.settings.state.directory}/tarazu-drain") / "changes.json"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server(tmp_path)
    monkeypatch.setenv("TARAZU_ROOT", str(tmp_path))
    return made


def ost(index: int, *, held_back: bool = False) -> Candidate:
    return Candidate(index, "oss1", "sick: 9.0 times slower than its peers (brw_stats)", 9.0, held_back)


def test_a_node_without_parameters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"expected obdfilter\.\*\.degraded or osp\."):
        drains.here(tmp_path)


def test_only_own_changes_are_undone(server: Server) -> None:
    before = server.now()
    assert {change.target for change in server.apply(ost(10)).set} == {TEN, OSP}
    assert server.now() == {ZERO: "0", TEN: "1", OSP: "0"}
    assert not server.apply(ost(10)).set, "it is set already"
    assert not server.apply(ost(10), fs_name="scratch").set and not server.apply(ost(11)).set
    server.apply(ost(0))
    assert [held.change.target for held in server.undo(0).restored] == [ZERO]
    assert len(server.undo().restored) == 2 and server.now() == before and not server.notes.exists()


def test_what_others_set_stays_and_can_be_asked_for_anew(server: Server) -> None:
    server.lctl(ZERO, "1")
    assert not any(server.apply(ost(0))) and not server.undo().restored and server.now()[ZERO] == "1"
    server.apply(ost(10))
    server.lctl(OSP, "64")
    assert [held.left_to for held in server.undo().left] == [f"{OSP}=64"]
    assert server.now()[OSP] == "64" and not server.notes.exists()
    server.apply(ost(10))
    server.lctl(TEN, "0")
    assert server.apply(ost(10)).set, "somebody has set it back, and asks for it again"
    assert len(server.undo().restored) == 2 and server.now()[OSP] == "64"


def test_what_was_drained_before_us_was_a_failure_at_each_undo_and_stayed_noted(server: Server) -> None:
    server.lctl(ZERO, "1")
    server.drains().engine.make([wish("drain", "1", ZERO)], "a test")
    assert server.notes.exists()
    assert not server.undo().still_set and server.now()[ZERO] == "1" and not server.notes.exists()


def test_a_target_that_has_moved_stays_noted(server: Server) -> None:
    server.apply(ost(0))
    place = server.path(ZERO).parent
    place.rename(server.root / "elsewhere")
    assert "not on this node at the moment" in server.undo().still_set[0][1] and server.notes.exists()
    (server.root / "elsewhere").rename(place)
    assert server.undo().restored and server.now()[ZERO] == "0"


def test_one_that_was_away_at_a_look_could_not_be_undone_any_more(server: Server) -> None:
    place = server.path(ZERO).parent
    server.apply(ost(0))
    place.rename(server.root / "elsewhere")
    server.drains().engine.make([wish("drain", "1", ZERO)], "a test")
    assert "not on this node at the moment" in server.undo().still_set[0][1]
    place.mkdir()
    server.path(ZERO).write_text("0\n")  # mounted anew: another device
    assert not server.undo().still_set and not server.notes.exists() and server.now()[ZERO] == "0"


def test_a_forged_note_sets_no_file_and_no_value_that_drain_never_set(server: Server) -> None:
    victim = server.root / "sys/fs/lustre/victim/passwd"
    victim.parent.mkdir()
    forgeries: tuple[Callable[[dict[str, Any]], Any], ...] = (
        lambda held: held["change"].update(target="victim.passwd"),
        lambda held: held["change"].update(target="obdfilter.../../victim.passwd"),
        lambda held: held["change"].update(lever="no such lever"),
        lambda held: held["before"][0].__setitem__(0, "victim.passwd"),
        lambda held: held["before"][0].__setitem__(1, "77"),
        lambda held: held["before"].clear(),
    )
    for forgery in forgeries:
        victim.write_text("1\n")
        server.apply(ost(0))
        kept = json.loads(server.notes.read_text())
        forgery(kept["held"][0])
        server.notes.write_text(json.dumps(kept))
        done = server.drains().engine.take_back("undo")
        assert len(done.failed) == 1 and not done.restored, done
        assert (server.now()[ZERO], victim.read_text()) == ("1", "1\n")
        server.notes.unlink()
        server.lctl(ZERO, "0")


def test_a_drain_is_worth_it_and_what_the_share_does_not_allow_is_said(server: Server) -> None:
    plan = drains.plan_of("lustre", [ost(10), ost(0, held_back=True)], drains.here(server.root), 0.1)
    assert [change.target for change in plan.changes] == [TEN, OSP]
    assert all(change.mends and not refusal(change) for change in plan.changes)
    assert [each.target for each in plan.cannot_mend] == ["lustre-OST0000"]
    drains.apply(server.drains(), plan)
    trail = list(read(Path(directory_of(server.settings)) / "trail.jsonl", 99))
    assert "but --share 0.1 of 0 OSTs lets none be out" in next(
        e.why for e in trail if e.event == "cannot mend"
    )
    assert trail[0].by == "tarazu change drain --apply" and trail[0].commands == (f"lctl set_param {TEN}=1",)


def test_what_cannot_be_drained_is_listed_until_it_can(server: Server) -> None:
    """It stood in the trail alone: `tarazu change list` did not show it, and each try added a line there."""

    def listed() -> list[str]:
        (agent,) = (each for each in listed_here(server.settings) if each.name == "drains")
        return [one.target for one in agent.changes if one.state == "cannot mend"]

    for _ in range(2):
        server.apply(ost(10), ost(0, held_back=True))
    assert listed() == ["lustre-OST0000"]
    trail = list(read(Path(directory_of(server.settings)) / "trail.jsonl", 99))
    assert [each.event for each in trail].count("cannot mend") == 1
    server.apply(ost(10))
    assert not listed()


def test_the_list_says_what_is_in_force_and_not_what_was_set(server: Server) -> None:
    def listed() -> dict[str, Listed]:
        (agent,) = (each for each in with_now(server.settings, listed_here(server.settings)) if each.changes)
        return {one.target: one for one in agent.changes}

    server.apply(ost(10))
    assert {target: (one.state, one.instead) for target, one in listed().items()} == {
        TEN: ("set", {}),
        OSP: ("set", {}),
    }
    server.lctl(TEN, "0")
    server.lctl(OSP, "64")
    found = listed()
    assert (found[TEN].state, found[TEN].instead) == ("left", {TEN: "0"})
    assert (found[OSP].state, found[OSP].instead, found[OSP].theirs) == ("left", {OSP: "64"}, {OSP: "64"})
    server.path(TEN).parent.rename(server.root / "elsewhere")
    assert listed()[TEN].state == "gone"


def test_no_ost_is_drained_where_the_others_are_too_full_for_its_files(server: Server) -> None:
    """The share was all that was looked at: a sick OST with room was drained, and files went to full ones."""
    here = drains.here(server.root)

    def drained(*fills: float) -> Done:
        osts = [Ost(i, "oss1", 1000, round(1000 * (1 - fill)), 10) for i, fill in enumerate(fills)]
        osts[1] = msgspec.structs.replace(osts[1], index=10)
        return drains.apply(server.drains(), drains.plan_of("lustre", [ost(10)], here, 0.5, osts))

    done = drained(0.97, 0.5, 0.96)
    assert not done.set and len(done.refused) == 2 and server.now()[TEN] == "0"
    assert "beyond nearly full, of OSTs that get new files: 0 now, 0.015 after it" in done.refused[0].why
    cannot = server.drains().store.proposals().cannot_mend
    assert [each.target for each in cannot] == [TEN, OSP]
    assert len(drained(0.9, 0.5, 0.96).set) == 2
    server.undo()
    assert len(drained(0.97, 0.99, 0.96).set) == 2, "it is the fullest of them"


def test_it_ends_by_itself_and_by_nothing_else(server: Server) -> None:
    server.apply(ost(10))

    def look(ahead_s: float, stopped: str = "") -> Done:
        return drains.end(server.agent(lambda: stopped, lambda: time.time() + ahead_s))

    for stopped in ("", "stopped"):
        assert not any(look(0.0, stopped)) and not any(look(6 * 86400.0, stopped))
    assert server.now()[TEN] == "1"
    assert len(look(8 * 86400.0).restored) == 2 and server.now()[TEN] == "0"


def test_a_node_on_which_all_was_taken_back_drains_nothing_and_says_how_to_go_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", server.environment()["PATH"])
    server.apply(ost(10))
    before = {**server.now(), TEN: "0", OSP: "20000"}
    assert not any(each.failed for each in by_hand.undo_all(server.settings, "ann", lambda each: None))
    with pytest.raises(Unavailable, match="undo --all, ann; to go on: tarazu change apply"):
        server.apply(ost(10))
    assert server.now() == before
    list(by_hand.go_on(server.settings, "ann"))
    assert server.apply(ost(10)).set
    (*_, _) = by_hand.undo(server.settings, [], "drain", "ann", lambda each: None)
    assert "taken back by ann" in server.apply(ost(10)).waits[0].why and server.now() == before
    list(by_hand.stop(server.settings, "ann"))
    with pytest.raises(Unavailable, match="stopped by tarazu change stop"):
        server.apply(ost(10))


def test_what_is_not_one_of_the_parameters_is_never_read_or_set(server: Server) -> None:
    done = server.agent().engine.make([wish("drain", "1", "victim.passwd"), wish("drain", "0", ZERO)], "")
    assert len(done.failed) == 2 and not done.set
