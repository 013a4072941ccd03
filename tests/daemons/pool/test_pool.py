"""A pool of good OSTs on the testbed: what tarazu-pool sets, what it takes back, and what is others'."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tarazu import config
from tarazu.cli import pool as pool_command
from tarazu.daemons.asking import Whole
from tarazu.daemons.changes import engine
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.agents.pools import FORMER, agent_of
from tarazu.daemons.changes.by_hand import Undone, undo_agent
from tarazu.daemons.changes.done import Done
from tarazu.daemons.changes.here import NodeAgent
from tarazu.daemons.changes.lctl_pool import LctlPool
from tarazu.daemons.changes.store import CHANGES
from tarazu.daemons.changes.trail import NAME as TRAIL
from tarazu.daemons.pool.planner import MEMORY, Look, Planner
from tarazu.errors import Unavailable
from tarazu.model import Ost, SystemView
from tarazu.ost_state import OstState, Verdict
from tarazu.pools.calls import MOST_OSTS, words
from tarazu.pools.choosing import HOUR_S, Memory
from tarazu.pools.planning import trouble
from tarazu.sim.testbed import Testbed, lctl_pools
from tarazu.sim.testbed.library import library_directory

from ..changes.case import Here

STATIC = library_directory() / "testbed" / "iorlike-static"
LIBRARY = str(library_directory() / "libtestbed.so")


def system(**verdicts: str) -> Whole:
    """All well but those that are named, as `_3="sick"`, since long."""
    named = {int(name[1:]): verdict for name, verdict in verdicts.items()}
    states = {i: OstState(Verdict(verdict), since_s=1.0) for i, verdict in named.items()}
    osts = (Ost(i, f"oss{i // 2}", 10, 9, 9, state=states.get(i, OstState())) for i in range(8))
    return Whole((SystemView("lustre", 1e9, tuple(osts)),))


class Site:
    def __init__(self, bed: Testbed, directory: Path) -> None:
        self.bed, self.now_s, self.stopped, self.trouble = bed, 1e9, "", ""
        self.settings = config.override(
            config.Settings(state=config.State(str(directory)), changes=config.Changes(per_hour=10_000)),
            "pool", mode="apply",
        )  # fmt: skip

    def keeper(self, lctl: str = "", **options: object) -> Keeper:
        """As a process has it that starts now. `lctl`: another program than the stand-in, which runs in this one."""
        settings = config.override(self.settings, "pool", **options)
        agent = agent_of(settings, stopped=lambda: self.stopped, trouble=lambda: self.trouble)
        return Keeper(settings, agent, lctl or self.bed, lambda: self.now_s)

    def members(self) -> list[int] | None:
        return self.bed.pools.get("good") and sorted(self.bed.pools["good"])

    def lctl(self, what: str, *osts: int) -> None:
        """By an administrator."""
        answer = here(self.bed).call((what, "lustre.good", *(f"OST{index:04x}" for index in osts)))
        assert answer.status == 0, answer

    @property
    def notes(self) -> Path:
        return Path(self.settings.state.pool) / CHANGES

    def trail(self) -> list[dict[str, object]]:
        return [
            json.loads(line) for line in (Path(self.settings.state.changes) / TRAIL).read_text().splitlines()
        ]


class Keeper(Planner):
    def __init__(
        self, settings: config.Settings, agent: Agent, lctl: str | Testbed, clock: Callable[[], float]
    ) -> None:
        super().__init__(settings, agent, clock)
        agent.engine.clock = clock
        calls = LctlPool(lctl if isinstance(lctl, str) else "lctl")
        calls.shown_s = 0.0  # the stand-in's calls take no time
        if isinstance(lctl, Testbed):
            calls.program = here(lctl)
        self.lever.lctl = calls
        agent.engine._programs = (calls.program,)

    def undo(self) -> Undone:
        each = NodeAgent("pools", "tarazu-pool", self.agent.store, self.agent)
        return undo_agent(each, "tarazu change pool --undo", lambda _: True, lambda _: None)

    def round(self, seen: Whole, mode: str = "apply") -> tuple[Look, Done]:
        """As the daemon has it; of the first pool what was seen."""
        looks = [] if self.agent.engine.stopped else self.look(seen)
        done = self.follow(looks, mode)
        return (looks or self.look(seen))[0], done


def here(bed: Testbed) -> Here:
    return Here("lctl", lambda arguments: lctl_pools.main([LIBRARY, *arguments]), bed.directory)


@pytest.fixture
def site(pool_bed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    for name, value in pool_bed.node_environment("mds").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    return Site(pool_bed, tmp_path)


def static_program(bed: Testbed, directory: str, files: int) -> set[int]:
    """The OSTs on which a program that nothing can be preloaded into makes its files."""
    pattern = f"{bed.client_mount()}/{directory}/f"
    assert (
        bed.exec(0, [STATIC, "-F", "-n", str(files), "-b", "4k", "-t", "4k", "-o", pattern]).returncode == 0
    )
    return {i for rank in range(files) for i in bed.layout(f"{directory}/f.{rank}").osts[0]}


@pytest.mark.skipif(not STATIC.exists(), reason="needs a static libc")
def test_a_program_that_escapes_the_library_avoids_a_sick_and_a_full_ost(site: Site) -> None:
    """With the stand-in for lctl as a program of its own."""
    bed = site.bed
    (bed.client_mount() / "d").mkdir()
    keeper = site.keeper(lctl="lctl")
    keeper.round(system(_3="sick"))
    assert bed.exec(0, ["lfs", "setstripe", "-p", "good", bed.client_mount() / "d"]).returncode == 0
    site.now_s += 60
    keeper.round(system(_3="sick", _6="full"))
    assert static_program(bed, "d/below", 12) == {0, 1, 2, 4, 5, 7}
    site.now_s += HOUR_S + 1
    keeper.round(system())
    assert static_program(bed, "d/later", 16) == set(range(8))


def test_a_look_changes_nothing_and_says_what_it_would_take(site: Site) -> None:
    (look,) = site.keeper().look(system(_3="sick"), guess=True)
    assert look.commands == (
        "lctl pool_new lustre.good",
        "lctl pool_add lustre.good 'lustre-OST[0-2,4-7]'",
    )
    assert [change.ost for change in look.round.waiting] == [3]
    assert site.members() is None and not Path(site.settings.state.pool).exists()


def test_observe_neither_makes_a_pool_nor_takes_back_what_was_made_by_hand(site: Site) -> None:
    keeper = site.keeper()
    keeper.round(system(_3="sick"), "observe")
    assert site.members() is None
    (proposal,) = keeper.agent.store.proposals().proposals
    assert proposal.commands[0] == "lctl pool_new lustre.good"
    site.keeper().apply(system(_3="sick"))
    for stopped in ("", "stopped by root", ""):
        site.stopped = stopped
        keeper.round(system(_3="sick"), "observe")
        assert site.members() == (list(range(8)) if stopped else [0, 1, 2, 4, 5, 6, 7])


def test_undo_removes_a_pool_that_was_not_there_and_pauses_the_keeper(site: Site) -> None:
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    assert not site.keeper().undo().failed
    assert "good" not in site.bed.pools and not site.notes.exists()
    keeper.round(system())
    assert "good" not in site.bed.pools
    assert keeper.agent.engine.stopped == "held by tarazu change pool --undo"
    site.keeper().apply(system())
    assert site.members() == list(range(8))


def test_a_pool_of_the_site_keeps_to_its_osts_and_is_given_back_as_it_was(site: Site) -> None:
    site.bed.mds.add_pool("good", [1, 2, 3, 4])
    keeper = site.keeper()
    keeper.round(system(_3="sick", _7="sick"))
    site.now_s += 60
    look, done = keeper.round(system(_3="sick", _2="dead"))
    assert site.members() == [1, 4] and look.commands == ("lctl pool_remove lustre.good lustre-OST0002",)
    (change,) = done.set
    assert change.mends and change.why == "OST 2: dead"
    assert {(s.measure, s.before, s.after) for s in change.scores if s.measure == "dead"} == {("dead", 1, 0)}
    # A new process, as after a crash: what was there is on disk.
    assert not site.keeper().undo().failed
    assert site.members() == [1, 2, 3, 4]


def test_what_an_administrator_changes_beside_us_is_his(site: Site) -> None:
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    site.lctl("pool_add", 3)
    site.lctl("pool_remove", 5)
    for _ in range(2):
        site.now_s += 2 * HOUR_S
        look, _done = keeper.round(system(_3="sick"))
        assert site.members() == [0, 1, 2, 3, 4, 6, 7] and look.theirs == {"3": "in", "5": "out"}
    undone = site.keeper().undo()
    assert not undone.failed and [held.theirs for held in undone.restored] == [{"3": "in", "5": "out"}]
    assert site.members() == [0, 1, 2, 3, 4, 6, 7]


def test_apply_makes_it_ours_again_and_a_pool_that_was_removed_is_not_made_again_by_itself(
    site: Site,
) -> None:
    keeper = site.keeper()
    keeper.round(system())
    site.lctl("pool_remove", 5)
    keeper.round(system())
    site.now_s += HOUR_S + 1
    keeper.apply(system())
    assert site.members() == list(range(8))
    site.bed.mds.destroy_pool("good")
    for _ in range(2):
        look, _done = keeper.round(system())
        assert "somebody else has removed it" in look.round.nothing and "good" not in site.bed.pools
    assert not keeper.apply(system())[1]
    assert site.members() == list(range(8))
    assert not site.keeper().undo().failed and "good" not in site.bed.pools


def test_what_is_applied_by_hand_over_somebody_else_stays_applied(site: Site) -> None:
    """What he had set was left to him again by the next round."""
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    site.lctl("pool_add", 3)
    site.lctl("pool_remove", 5)
    keeper.round(system(_3="sick"))
    site.keeper().apply(system(_3="sick"))
    for _ in range(2):
        site.now_s += 60
        look, done = keeper.round(system(_3="sick"))
        assert site.members() == [0, 1, 2, 4, 5, 6, 7] and not look.theirs and not done.left


@pytest.mark.parametrize("sites", [False, True])
def test_while_the_site_is_stopped_a_pool_of_ours_is_of_all_and_one_of_the_sites_is_as_it_was(
    site: Site, sites: bool
) -> None:
    if sites:
        site.bed.mds.add_pool("good", [2, 3, 4, 5])
    mine = [2, 4, 5] if sites else [0, 1, 2, 4, 5, 6, 7]
    keeper = site.keeper()
    for _ in range(2):
        keeper.round(system(_3="sick"))
        site.now_s += 60
    assert site.members() == mine
    for _ in range(2):
        site.stopped = "stopped by root"
        keeper.round(system(_3="sick"))
        assert site.members() == ([2, 3, 4, 5] if sites else list(range(8)))
        site.stopped = ""
        _look, done = keeper.round(system(_3="sick"))
        assert site.members() == mine and not done.left, "all of it at once"
    site.stopped = "stopped by root"
    keeper.round(system(_3="sick"))
    site.keeper().undo()
    assert site.members() == ([2, 3, 4, 5] if sites else None)


def test_a_change_that_fails_takes_back_nothing_but_itself(site: Site) -> None:
    """A pool of months was removed because one OST more could not be taken out of it."""
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    noted = site.notes.read_bytes()

    class Failing(LctlPool):
        def change(self, calls: list[list[str]]) -> None:  # type: ignore[override]
            if calls and calls[0][0] == "pool_remove":
                super().change([[*calls[0][:2], "OST0005"]])
                raise Unavailable("the MGS went away")
            super().change(calls)

    keeper.lever.lctl = Failing("lctl")
    site.now_s += 60
    _look, done = keeper.round(system(_3="sick", _5="dead", _6="dead"))
    assert done.failed and site.members() == [0, 1, 2, 4, 5, 6, 7]
    assert json.loads(site.notes.read_bytes())["held"] == json.loads(noted)["held"]


class Late:
    """Calls take as long as Lustre's: a part of a second here."""

    def __init__(self, site: Site, lctl: type[LctlPool]) -> None:
        site.bed.set_pool_delay(0.3)
        self.keeper = site.keeper()
        self.keeper.lever.lctl = self.lctl = lctl("lctl")
        self.lctl.shown_s = 0.5


def test_one_that_somebody_took_out_at_the_same_moment_made_the_others_his_too(site: Site) -> None:
    site.keeper().round(system())

    class Beside(LctlPool):
        def change(self, calls: Sequence[Sequence[str]]) -> None:
            if calls and calls[0][0] == "pool_remove" and 5 in (site.members() or ()):
                site.lctl("pool_remove", 5)
            super().change(calls)

    late = Late(site, Beside)
    _look, done = late.keeper.round(system(_3="sick", _5="dead"))
    assert done.set and not done.failed and site.members() == [0, 1, 2, 4, 6, 7]
    site.now_s += 60
    _look, done = late.keeper.round(system(_3="sick", _5="dead"))
    assert not any(done)


def test_what_a_killed_lctl_has_done_was_not_seen_yet_by_an_undo_that_came_at_once(site: Site) -> None:
    class Killed(LctlPool):
        def change(self, calls: Sequence[Sequence[str]]) -> None:
            words = shlex.join(["lctl", *calls[-1]])
            subprocess.run(["timeout", "-s", "KILL", "0.2", "sh", "-c", f"exec {words}"], check=False)
            os._exit(0)

    site.lctl("pool_new")
    site.lctl("pool_add", 0, 1, 2, 3)
    if not (pid := os.fork()):
        Late(site, Killed).keeper.round(system(_3="sick"))
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    late = Late(site, LctlPool)
    late.lctl.shown_s = 2.0
    assert late.keeper.agent.engine.take_back("undo", wait_s=5.0).restored
    assert site.members() == [0, 1, 2, 3]


def test_while_a_server_fails_over_osts_leave_and_none_comes_back(site: Site) -> None:
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    site.now_s += 2 * HOUR_S
    site.trouble = "OST 5 is silent"
    _look, done = keeper.round(system())
    assert done.waits and site.members() == [0, 1, 2, 4, 5, 6, 7]
    keeper.round(system(_4="dead"))
    site.now_s += 60
    keeper.round(system(_4="dead"))
    assert site.members() == [0, 1, 2, 5, 6, 7]
    site.trouble = ""
    keeper.round(system(_4="dead"))
    assert site.members() == [0, 1, 2, 3, 5, 6, 7]


def test_an_ost_that_is_away_for_good_keeps_no_other_from_coming_back() -> None:
    (view,) = system(_4="dead").views
    assert trouble(view.osts, 60.0) == "OST 4 is dead" and not trouble(view.osts, 1e9)


def test_what_cannot_be_mended_is_said(site: Site) -> None:
    seen = system(**{f"_{i}": "sick" for i in range(5)})
    keeper = site.keeper(floor=0.5)
    for _ in range(3):
        look, _done = keeper.round(seen)
        site.now_s += 60
    assert site.members() == [3, 5, 6, 7] or len(site.members() or ()) == 4
    assert look.cannot_mend and look.cannot_mend.why == (
        "5 of 8 OSTs are sick: at most 4 may leave (pool.floor)"
    )
    assert [line["why"] for line in site.trail() if line["event"] == "cannot mend"][
        -1
    ] == look.cannot_mend.why


def test_without_lctl_nothing_is_noted(site: Site) -> None:
    look, _done = site.keeper(lctl="/nowhere/lctl").round(system())
    assert "/nowhere/lctl" in look.failed and not site.notes.exists()


def test_a_pool_of_another_ones_osts_is_as_lctl_says_not_as_a_client_told_mdsd(site: Site) -> None:
    """A client's key can tell mdsd of pools, where that runs away from the MDS."""
    (view,) = system(_2="sick").views
    told = [
        msgspec.structs.replace(o, pools=("flash", "good") if o.index in (5, 6) else ()) for o in view.osts
    ]
    seen = Whole((msgspec.structs.replace(view, osts=tuple(told)),))
    look, _done = site.keeper(of="nowhere").round(seen)
    assert "expected a pool lustre.nowhere, found none" in look.failed and "good" not in site.bed.pools
    assert sorted(site.bed.pools["flash"]) == [1, 2, 3]
    site.keeper(of="flash").round(seen)
    assert site.members() == [1, 3]


def test_undo_leaves_no_pool_of_the_one_ost_that_somebody_else_put_in(site: Site) -> None:
    """All new files of its directories went to that one."""
    site.keeper().round(system(_6="sick"))
    site.lctl("pool_remove", 0)
    site.lctl("pool_add", 6)
    site.keeper().undo()
    assert site.members() == [1, 2, 3, 4, 5, 6, 7], "all but what he took out"


@pytest.mark.parametrize("emptied", [True, False])
def test_undo_of_our_pool_that_somebody_else_emptied_or_removed_leaves_none(
    site: Site, emptied: bool
) -> None:
    site.keeper().round(system())
    site.lctl("pool_remove", *range(8))
    if not emptied:
        site.lctl("pool_destroy")
    undone = site.keeper().undo()
    assert (
        not undone.failed
        and (undone.restored or undone.left)
        and site.members() is None
        and "good" not in site.bed.pools
    )
    assert not site.notes.exists()


def test_undo_of_the_sites_pool_keeps_what_others_did_and_does_not_empty_it(site: Site) -> None:
    site.bed.mds.add_pool("good", [1, 2])
    site.bed.mds.add_pool("mine", [1, 2, 3, 4])
    try:
        site.keeper(of="mine").round(system())
        assert site.members() == [1, 2, 3, 4]
        site.lctl("pool_remove", 1)
        site.lctl("pool_add", 7)
        site.keeper().undo()
        assert site.members() == [2, 7]
        # Both of the site's are taken out beside us: ours alone are left, which are better than none.
        site.lctl("pool_remove", 7)
        site.lctl("pool_add", 1)
        site.now_s += 2 * HOUR_S
        site.keeper(of="mine").apply(system())
        assert site.members() == [1, 2, 3, 4]
        site.lctl("pool_remove", 1, 2)
        site.keeper().undo()
        assert site.members() == [3, 4], "a pool without OSTs limits nothing"
    finally:
        site.bed.mds.destroy_pool("mine")


def test_apply_away_from_the_mgs_says_that_it_must_run_there_and_leaves_no_note(
    site: Site, tmp_path: Path
) -> None:
    """Captured on 2.17.57."""
    lctl = tmp_path / "lctl"
    refuses = 'echo "No device found for name MGS: Invalid argument" >&2; exit 19'
    mgs = site.bed.directory / "mds/bin/lctl"
    lctl.write_text(f'#!/bin/sh\ncase $1 in pool_list) exec {mgs} "$@";; esac\n{refuses}\n')
    lctl.chmod(0o755)
    _looks, failed = site.keeper(lctl=str(lctl)).apply(system())
    assert "expected to run on the node of the MGS of lustre" in failed["lustre.good"]
    assert not site.notes.exists() and not site.keeper().undo().failed and "good" not in site.bed.pools
    # Of a pool that is there, too.
    site.bed.mds.add_pool("good", list(range(8)))
    _looks, failed = site.keeper(lctl=str(lctl)).apply(system(_3="sick"))
    assert "expected to run on the node of the MGS" in failed["lustre.good"]
    assert not site.notes.exists() and site.members() == list(range(8))


def test_what_the_command_says_is_true(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    def said(keeper: Keeper) -> str:
        for look in keeper.look(system(), guess=True):
            pool_command.print_look(look, stopped=keeper.agent.engine.stopped)
        return capsys.readouterr().out

    keeper = site.keeper()
    keeper.round(system())
    assert said(keeper) == "lustre.good: 8 OSTs\n  as it should be\n"
    site.lctl("pool_remove", 0)
    shown = said(keeper)
    assert "somebody else has put it out" in shown and "stays so until tarazu change pool --apply" in shown
    site.lctl("pool_remove", *range(1, 8))
    assert "the pool has no OSTs: files of its directories go to any OST" in said(keeper)
    site.lctl("pool_destroy")
    assert "somebody else has removed it: tarazu change pool --apply creates it again" in said(keeper)
    keeper.undo()
    shown = said(keeper)
    assert "nothing is changed now: held by tarazu change pool --undo" in shown
    assert "as it should" not in shown


def test_a_flapping_ost_changes_the_pool_at_most_twice_an_hour(site: Site) -> None:
    """Ten hours of real calls: sick, well for a little longer than it takes to come back, sick again, through a
    restart of the keeper.
    """
    keeper, before, changes = site.keeper(), None, []
    for round_ in range(60):
        site.now_s += 600.5
        keeper.round(system(**({"_3": "sick"} if round_ % 3 == 0 else {})))
        if round_ == 30:
            keeper = site.keeper()
        now = 3 in (site.members() or ())
        if before not in (None, now):
            changes.append(site.now_s)
        before = now
    assert len(changes) >= 6, "it comes and goes"
    assert all(later - first > HOUR_S for first, later in zip(changes, changes[2:], strict=False))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_that_was_ahead_keeps_no_ost_out_of_the_pool(site: Site, restarted: bool) -> None:
    """What it noted is an hour's wait, as ever."""
    keeper = site.keeper()
    keeper.round(system())
    right_s, site.now_s = site.now_s, site.now_s + 365 * 86400
    for _ in range(3):
        site.now_s += 60
        keeper.round(system(_3="sick"))
    assert 3 not in (site.members() or ())
    site.now_s = right_s
    if restarted:
        keeper = site.keeper()
    keeper.round(system())
    noted = json.loads((site.notes.parent / MEMORY).read_bytes())["lustre.good"]["3"]
    assert noted["left_s"] <= site.now_s and max(noted["changes_s"]) <= site.now_s, "also on disk"
    assert 3 not in (site.members() or ())
    site.now_s += HOUR_S + 1
    keeper.round(system())
    assert 3 in (site.members() or ())


def test_a_memory_that_is_lost_costs_patience_alone(site: Site) -> None:
    keeper = site.keeper()
    keeper.round(system())
    keeper.round(system(_3="sick"))
    (site.notes.parent / MEMORY).write_text("{")
    keeper = site.keeper()
    keeper.round(system(_3="sick"))
    site.now_s += 60
    keeper.round(system(_3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]


def test_the_calls_for_many_osts_are_few_and_their_words_short() -> None:
    """Lustre 2.12 to 2.15 wait some seconds after each word; 2.16 and later refuse words of 80 characters."""
    assert words("scratch.good", "pool_add", range(100)) == [
        ["pool_add", "scratch.good", "scratch-OST[0-63]"]
    ]
    for osts in (range(3600), range(0, 3600, 2), [3], [1, 2, 4095]):
        calls = words("scratch99.good", "pool_add", osts)
        named = [lctl_pools._names("scratch99", call[2:]) for call in calls]
        assert [index for part in named for index in part] == list(osts)
        assert all(len(call) == 3 and len(call[2]) < 80 for call in calls)
        assert all(len(part) <= MOST_OSTS for part in named)


def test_of_two_file_systems_each_has_its_pool_and_one_that_fails_holds_up_no_other(site: Site) -> None:
    """The other one is of another MGS, say: what is its is not done, and said."""
    (other,) = system().views
    both = Whole((msgspec.structs.replace(other, fs_name="flash"), *system(_3="sick").views))
    keeper = site.keeper()
    done = keeper.follow(keeper.look(both), "apply")
    assert [failure.key for failure in done.failed] == [("pool", "flash.good")]
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    keeper.undo()
    assert "good" not in site.bed.pools


def test_apply_by_hand_beside_a_keeper_forgets_its_waits_too(site: Site) -> None:
    """The keeper kept what it remembered of an OST, and wrote that over what the command had noted."""
    keeper = site.keeper()
    for verdicts in ({}, {"_3": "sick"}):
        keeper.round(system(**verdicts))
        site.now_s += 60
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    site.keeper().apply(system())
    assert site.members() == list(range(8))
    for _ in range(3):
        site.now_s += 60
        keeper.round(system(_3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7], "no wait of before the command holds it"
    site.keeper().apply(system())
    site.keeper().apply(system(_5="sick"))
    assert site.members() == [0, 1, 2, 3, 4, 6, 7]
    site.now_s += 15 * 60
    keeper.round(system())
    site.now_s += 11 * 60
    keeper.round(system())
    assert site.members() == [0, 1, 2, 3, 4, 6, 7], "it left so lately that it waits an hour"


def former(existed: bool, before: list[int], members: list[int], theirs: dict[str, str]) -> dict[str, object]:
    """As an earlier version noted it."""
    return {
        "format": 1,
        "pools": {
            "lustre.good": {
                "existed": existed, "before": before, "members": members, "becoming": members,
                "theirs": theirs, "memory": {"3": msgspec.to_builtins(Memory(1.0, 2.0, 3.0, (4.0,)))},
                "candidates": list(range(8)),
            }
        },
    }  # fmt: skip


def test_what_a_version_before_noted_is_kept_and_undone(site: Site) -> None:
    directory = site.notes.parent
    for existed, before, theirs, expected in (
        (True, [1, 2, 3], {}, [1, 2, 3]),
        (True, [1, 2, 3], {"2": "out"}, [1, 3]),
        (False, [], {}, None),
        (False, [], {"7": "in"}, list(range(8))),
    ):
        members = [1, 2] if existed else [0, 1, 2]
        site.bed.mds.add_pool(
            "good", [*(i for i in members if theirs.get(str(i)) != "out"), *map(int, {"7"} & {*theirs})]
        )
        directory.mkdir(exist_ok=True, mode=0o700)
        (directory / FORMER).write_text(json.dumps(former(existed, before, members, theirs)))
        (directory / FORMER).chmod(0o600)
        _look, done = site.keeper().round(system(**{f"_{i}": "excluded" for i in range(3, 8)}))
        assert not (done.failed or done.left) and not (directory / FORMER).exists()
        site.keeper().undo()
        assert site.members() == expected and not site.notes.exists()
        site.keeper().agent.store.hold(False)
        if "good" in site.bed.pools:
            site.bed.mds.destroy_pool("good")
        logging.info("%s", site.trail()[-1])
