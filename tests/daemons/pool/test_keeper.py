"""The keeper of a pool on the testbed: what it sets, what it takes back, after a crash too, and what is others'."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.cli import pool as pool_command
from tarazu.daemons.asking import Whole
from tarazu.daemons.audit_file import AuditFile
from tarazu.daemons.pool.calls import MOST_OSTS, Pools, words
from tarazu.daemons.pool.keeper import Keeper
from tarazu.daemons.pool.notes import NAME
from tarazu.errors import StoreError, Unavailable
from tarazu.model import Ost, SystemView
from tarazu.ost_state import OstState, Verdict
from tarazu.pools.choosing import HOUR_S
from tarazu.sim.testbed import Testbed, lctl_pools
from tarazu.sim.testbed.library import library_directory

STATIC = library_directory() / "testbed" / "iorlike-static"


def system(bed: Testbed, **verdicts: str) -> Whole:
    """All well but those that are named, as `_3="sick"`, since long."""
    named = {int(name[1:]): verdict for name, verdict in verdicts.items()}
    states = {i: OstState(Verdict(verdict), since_s=1.0) for i, verdict in named.items()}
    osts = (Ost(i, oss, 10, 9, 9, state=states.get(i, OstState())) for i, oss in enumerate(bed.oss_of_ost))
    return Whole((SystemView("lustre", 1e9, tuple(osts)),))


class Site:
    def __init__(self, bed: Testbed, directory: Path) -> None:
        self.bed, self.now_s, self.stopped = bed, 1e9, ""
        os.environ.update(bed.mds_environment())
        self.lctl = bed.directory / "mds/bin/lctl"
        self.settings = config.override(
            config.Settings(state=config.State(str(directory))), "pool", mode="apply",
        )  # fmt: skip

    def keeper(self, lctl: str = "lctl", audit: Path | None = None, **changes: Any) -> Keeper:
        settings = config.override(self.settings, "pool", **changes)
        keeper = Keeper(settings, stopped=lambda: self.stopped, clock=lambda: self.now_s)
        keeper.pools = Pools(lctl)
        if audit:
            keeper.audit = AuditFile(str(audit), logging.getLogger())
        return keeper

    def members(self) -> list[int] | None:
        return self.bed.pools.get("good") and sorted(self.bed.pools["good"])


@pytest.fixture
def site(pool_bed: Testbed, tmp_path: Path) -> Site:
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
    bed = site.bed
    (bed.client_mount() / "d").mkdir()
    keeper = site.keeper()
    keeper.apply(system(bed, _3="sick"))
    assert bed.exec(0, ["lfs", "setstripe", "-p", "good", bed.client_mount() / "d"]).returncode == 0
    site.now_s += 60
    keeper.apply(system(bed, _3="sick", _6="full"))
    assert static_program(bed, "d/below", 12) == {0, 1, 2, 4, 5, 7}
    site.now_s += HOUR_S + 1
    keeper.apply(system(bed))
    assert static_program(bed, "d/later", 16) == set(range(8))


def test_observe_changes_nothing_and_says_what_it_would_do(site: Site) -> None:
    (done,) = site.keeper().look(system(site.bed, _3="sick"))
    assert done.commands[0] == "lctl pool_new lustre.good" and not done.done
    assert done.commands[1] == "lctl pool_add lustre.good 'lustre-OST[0-2,4-7]'"
    assert site.members() is None and not Path(site.settings.state.pool).exists()


def test_undo_removes_a_pool_that_was_not_there_and_pauses_the_keeper(site: Site) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    keeper.notes.hold(True)
    assert keeper.undo() == [("lustre.good", "removed: it was not there before", True)]
    assert "good" not in site.bed.pools and not (Path(site.settings.state.pool) / NAME).exists()
    (done,) = site.keeper().apply(system(site.bed))
    assert done.round.nothing == "held by tarazu change pool --undo" and "good" not in site.bed.pools


def test_a_pool_of_the_site_keeps_to_its_osts_and_is_given_back_as_it_was(site: Site) -> None:
    site.bed.mds.add_pool("good", [1, 2, 3, 4])
    keeper = site.keeper()
    keeper.apply(system(site.bed, _3="sick", _7="sick"))
    site.now_s += 60
    (done,) = keeper.apply(system(site.bed, _3="sick", _2="dead"))
    assert site.members() == [1, 4] and done.commands == ("lctl pool_remove lustre.good lustre-OST0002",)
    # A new process, as after a crash: what was there is on disk.
    assert site.keeper().undo() == [("lustre.good", "2 OSTs added, 0 removed", True)]
    assert site.members() == [1, 2, 3, 4]


def test_what_an_administrator_changes_beside_us_is_his(site: Site) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed, _3="sick"))
    calls = Pools(str(site.lctl))
    calls.change("lustre", "good", "pool_add", [3])
    calls.change("lustre", "good", "pool_remove", [5])
    for _ in range(2):
        site.now_s += 2 * HOUR_S
        (done,) = keeper.apply(system(site.bed, _3="sick"))
        assert site.members() == [0, 1, 2, 3, 4, 6, 7] and done.theirs == {3: "in", 5: "out"}
    why = "it stays, for somebody else has put 3 into it"
    assert site.keeper().undo() == [("lustre.good", f"0 OSTs added, 0 removed; it has 7 OSTs: {why}", True)]
    assert site.members() == [0, 1, 2, 3, 4, 6, 7]


def test_apply_makes_it_ours_again_and_a_pool_that_was_removed_is_not_made_again_by_itself(
    site: Site,
) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed))
    Pools(str(site.lctl)).change("lustre", "good", "pool_remove", [5])
    keeper.apply(system(site.bed))
    site.now_s += HOUR_S + 1
    keeper.apply(system(site.bed), anew=True)
    assert site.members() == list(range(8))
    site.bed.mds.destroy_pool("good")
    (done,) = keeper.apply(system(site.bed))
    assert "somebody else has removed it" in done.round.nothing and "good" not in site.bed.pools
    keeper.apply(system(site.bed), anew=True)
    assert site.members() == list(range(8))


def test_while_the_site_is_stopped_the_pool_is_of_all(site: Site) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed, _3="sick"))
    site.stopped = "stopped by root"
    (done,) = keeper.apply(system(site.bed, _3="sick"))
    assert site.members() == list(range(8)) and done.round.nothing == "stopped by root"
    site.stopped = ""
    keeper.apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]


def test_killed_between_note_and_call_it_goes_on_and_undoes(site: Site) -> None:
    """The child is killed while lctl runs: the note says what was and what is becoming."""
    site.bed.mds.add_pool("good", list(range(8)))
    script = (
        "import sys, msgspec; from tarazu import config; from tarazu.daemons.pool.keeper import Keeper\n"
        "from tarazu.daemons.asking import Whole\n"
        "seen = msgspec.json.decode(sys.argv[2], type=Whole)\n"
        "settings = config.Settings(state=config.State(sys.argv[1]))\n"
        "Keeper(settings, stopped=lambda: '', clock=lambda: 1e9).apply(seen)\n"
    )
    seen = msgspec.json.encode(system(site.bed, _3="sick")).decode()
    site.bed.set_pool_delay(0.3)
    words = [sys.executable, "-c", script, site.settings.state.directory, seen]
    child = subprocess.Popen(words)
    note = Path(site.settings.state.pool) / NAME
    deadline = time.monotonic() + 20
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    site.bed.set_pool_delay(0.0)
    keeper = site.keeper()
    keeper.notes.load()
    noted = keeper.notes.pools["lustre.good"]
    assert (noted.before, noted.becoming) == (tuple(range(8)), (0, 1, 2, 4, 5, 6, 7))
    # The lctl that it had started holds the lock until it is done.
    keeper.undo()
    assert site.members() == list(range(8)) and not note.exists()


def test_two_keepers_do_not_meet_and_foreign_notes_are_refused(site: Site) -> None:
    keeper = site.keeper()
    claim = keeper.notes.claim()
    with pytest.raises(Unavailable, match="tarazu-pool keeps the pools here"):
        site.keeper().notes.claim()
    os.close(claim)
    Path(site.settings.state.pool, NAME).write_text("[1]")
    with pytest.raises(StoreError, match="what pools were before tarazu changed them"):
        site.keeper().apply(system(site.bed))
    assert "good" not in site.bed.pools


def test_without_lctl_or_off_the_mgs_nothing_is_noted(site: Site) -> None:
    (done,) = site.keeper(lctl="/nowhere/lctl").apply(system(site.bed))
    assert "/nowhere/lctl" in done.failed and not (Path(site.settings.state.pool) / NAME).exists()


def test_a_pool_of_another_ones_osts_is_as_lctl_says_not_as_a_client_told_mdsd(site: Site) -> None:
    """A client's key can tell mdsd of pools, where that runs away from the MDS."""
    (view,) = system(site.bed, _2="sick").views
    told = [
        msgspec.structs.replace(o, pools=("flash", "good") if o.index in (5, 6) else ()) for o in view.osts
    ]
    seen = Whole((msgspec.structs.replace(view, osts=tuple(told)),))
    (done,) = site.keeper(of="nowhere").apply(seen)
    assert "expected a pool lustre.nowhere, found none" in done.failed and "good" not in site.bed.pools
    assert sorted(site.bed.pools["flash"]) == [1, 2, 3]
    (done,) = site.keeper(of="flash").look(seen)
    assert not done.exists and [change.ost for change in done.round.add] == [1, 3]
    site.keeper(of="flash").apply(seen)
    assert site.members() == [1, 3]


def test_undo_leaves_no_pool_of_the_one_ost_that_somebody_else_put_in(site: Site) -> None:
    """All new files of its directories went to that one."""
    keeper = site.keeper()
    keeper.apply(system(site.bed, _6="sick"))
    calls = Pools(str(site.lctl))
    calls.change("lustre", "good", "pool_remove", [0])
    calls.change("lustre", "good", "pool_add", [6])
    keeper.undo()
    assert site.members() == [1, 2, 3, 4, 5, 6, 7], "all but what he took out"
    # While his was the only one left he had made it so himself.
    for ost in (1, 2, 3, 4, 5, 7):
        calls.change("lustre", "good", "pool_remove", [ost])
    keeper.notes.hold(False)
    keeper.apply(system(site.bed))
    assert site.keeper().undo() == [] and site.members() == [6]


@pytest.mark.parametrize("emptied", [True, False])
def test_undo_of_our_pool_that_somebody_else_emptied_or_removed_leaves_none(
    site: Site, emptied: bool
) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed))
    calls = Pools(str(site.lctl))
    calls.change("lustre", "good", "pool_remove", list(range(8)))
    if not emptied:
        calls.change("lustre", "good", "pool_destroy")
    ((_, said, done),) = keeper.undo()
    assert done and site.members() is None, said
    assert said == (
        "removed: it was not there before" if emptied else "is gone already: somebody else has removed it"
    )
    assert not (Path(site.settings.state.pool) / NAME).exists()


def test_undo_of_the_sites_pool_keeps_what_others_did_and_does_not_empty_it(site: Site) -> None:
    site.bed.mds.add_pool("good", [1, 2])
    site.bed.mds.add_pool("mine", [1, 2, 3, 4])
    calls = Pools(str(site.lctl))
    try:
        keeper = site.keeper(of="mine")
        keeper.apply(system(site.bed))
        assert site.members() == [1, 2, 3, 4]
        calls.change("lustre", "good", "pool_remove", [1])
        calls.change("lustre", "good", "pool_add", [7])
        ((_, said, _),) = keeper.undo()
        assert site.members() == [2, 7] and said.endswith(
            "it has 2 OSTs: somebody else has put in 7, out 1"
        ), said
        # Both of the site's are taken out beside us: ours alone are left, which are better than none.
        calls.change("lustre", "good", "pool_remove", [7])
        calls.change("lustre", "good", "pool_add", [1])
        site.now_s += 2 * HOUR_S
        keeper = site.keeper(of="mine")
        keeper.apply(system(site.bed))
        assert site.members() == [1, 2, 3, 4]
        calls.change("lustre", "good", "pool_remove", [1, 2])
        ((_, said, _),) = keeper.undo()
        assert site.members() == [3, 4] and "a pool without OSTs limits nothing" in said
    finally:
        site.bed.mds.destroy_pool("mine")


def test_apply_away_from_the_mgs_says_that_it_must_run_there_and_leaves_no_note(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captured on 2.17.57."""
    lctl, audit = tmp_path / "lctl", tmp_path / "audit.log"
    refuses = 'echo "No device found for name MGS: Invalid argument" >&2; exit 19'
    lctl.write_text(f'#!/bin/sh\ncase $1 in pool_list) exec {site.lctl} "$@";; esac\n{refuses}\n')
    lctl.chmod(0o755)
    keeper = site.keeper(lctl=str(lctl), audit=audit)
    for _ in range(3):
        (done,) = keeper.apply(system(site.bed), anew=True)
        assert "expected to run on the node of the MGS of lustre" in done.failed
        assert not (Path(site.settings.state.pool) / NAME).exists()
    assert len(audit.read_text().splitlines()) == 2, "said once"
    assert keeper.undo() == [] and "good" not in site.bed.pools
    # Of a pool that is there, too.
    site.bed.mds.add_pool("good", list(range(8)))
    (done,) = keeper.apply(system(site.bed, _3="sick"), anew=True)
    assert "expected to run on the node of the MGS" in done.failed
    assert not (Path(site.settings.state.pool) / NAME).exists() and site.members() == list(range(8))


def test_a_kill_between_the_call_and_its_line_loses_no_line(site: Site, tmp_path: Path) -> None:
    site.bed.mds.add_pool("good", list(range(8)))
    audit = tmp_path / "audit.log"
    keeper = site.keeper(audit=audit)

    class Killed(Pools):
        def change(self, fs_name: str, pool: str, what: str, osts: Sequence[int] = ()) -> None:
            super().change(fs_name, pool, what, osts)
            raise KeyboardInterrupt

    keeper.pools = Killed(str(site.lctl))
    with pytest.raises(KeyboardInterrupt):
        keeper.apply(system(site.bed, _3="sick"), anew=True)
    (line,) = (line.partition(" ")[2] for line in audit.read_text().splitlines())
    assert line == 'pool="lustre.good" removing=3 why="sick"' and site.members() == [0, 1, 2, 4, 5, 6, 7]


def test_what_tarazu_pool_says_is_true(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    def said(keeper: Keeper, seen: Whole) -> str:
        for done in keeper.look(seen):
            pool_command._print(done, False)
        return capsys.readouterr().out

    seen, calls = system(site.bed), Pools(str(site.lctl))
    keeper = site.keeper()
    keeper.apply(seen)
    assert said(keeper, seen) == "lustre.good: 8 OSTs\n  as it should be\n"
    calls.change("lustre", "good", "pool_remove", [0])
    shown = said(keeper, seen)
    assert "somebody else has put it out" in shown and "stays so until tarazu change pool --apply" in shown
    calls.change("lustre", "good", "pool_remove", list(range(1, 8)))
    assert "it has no OSTs: files of its directories go to any" in said(keeper, seen)
    calls.change("lustre", "good", "pool_destroy")
    assert "somebody else has removed it: tarazu change pool --apply makes it" in said(keeper, seen)
    assert "noted, and not kept any more" in said(site.keeper(name="better"), seen)
    keeper.notes.hold(True)
    keeper.undo()
    shown = said(keeper, seen)
    assert (
        "nothing is changed now: held by tarazu change pool --undo" in shown and "as it should" not in shown
    )


class InThisProcess(Pools):
    """The stand-in for lctl without a process for each call."""

    def __init__(self, site: Site) -> None:
        super().__init__("")
        self._words = [str(library_directory() / "libtestbed.so"), str(site.bed.directory)]

    def _call(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            status = lctl_pools.main([*self._words, *arguments])
        return status, out.getvalue(), err.getvalue()


def test_a_flapping_ost_changes_the_pool_at_most_twice_an_hour(site: Site) -> None:
    """Ten hours of real calls: sick, well for a little longer than it takes to come back, sick again, through a
    restart of the keeper.
    """

    def keeper_there() -> Keeper:
        made = site.keeper()
        made.pools = InThisProcess(site)
        return made

    keeper, before, changes = keeper_there(), None, []
    for round_ in range(60):
        site.now_s += 600.5
        keeper.apply(system(site.bed, **({"_3": "sick"} if round_ % 3 == 0 else {})))
        if round_ == 30:
            keeper = keeper_there()
        now = 3 in (site.members() or ())
        if before not in (None, now):
            changes.append(site.now_s)
        before = now
    assert len(changes) >= 6, "it comes and goes"
    assert all(later - first > HOUR_S for first, later in zip(changes, changes[2:], strict=False))


def test_a_clock_that_was_ahead_keeps_no_ost_out_of_the_pool(site: Site) -> None:
    """Neither live nor through a restart: what it noted is an hour's wait, as ever."""
    for restarted in (False, True):
        keeper = site.keeper()
        keeper.pools = InThisProcess(site)
        keeper.apply(system(site.bed))
        right_s, site.now_s = site.now_s, site.now_s + 365 * 86400
        for _ in range(3):
            site.now_s += 60
            keeper.apply(system(site.bed, _3="sick"))
        assert 3 not in (site.members() or ())
        site.now_s = right_s
        if restarted:
            keeper = site.keeper()
            keeper.pools = InThisProcess(site)
        keeper.apply(system(site.bed))
        (note,) = keeper.notes.pools.values()
        memory = note.memory[3]
        assert memory.left_s <= site.now_s and max(memory.changes_s) <= site.now_s, "also on disk"
        assert 3 not in (site.members() or ())
        if restarted:
            # Who applies by hand does not wait.
            keeper.apply(system(site.bed), anew=True)
        else:
            site.now_s += HOUR_S + 1
            keeper.apply(system(site.bed))
        assert 3 in (site.members() or ())
        site.now_s += 3 * HOUR_S


def test_the_calls_for_many_osts_are_few_and_their_words_short() -> None:
    """Lustre 2.12 to 2.15 wait some seconds after each word; 2.16 and later refuse words of 80 characters."""
    assert words("scratch", "good", "pool_add", range(100)) == [
        ["pool_add", "scratch.good", "scratch-OST[0-63]"]
    ]
    for osts in (range(3600), range(0, 3600, 2), [3], [1, 2, 4095]):
        calls = words("scratch99", "good", "pool_add", osts)
        named = [lctl_pools._names("scratch99", call[2:]) for call in calls]
        assert [index for part in named for index in part] == list(osts)
        assert all(len(call) == 3 and len(call[2]) < 80 for call in calls)
        assert all(len(part) <= MOST_OSTS for part in named)


def test_a_pool_whose_beginning_failed_half_way_is_completed_at_once(site: Site) -> None:
    keeper = site.keeper()

    class Failing(Pools):
        def change(self, fs_name: str, pool: str, what: str, osts: Sequence[int] = ()) -> None:
            super().change(fs_name, pool, what, list(osts)[:2])
            if osts:
                raise Unavailable("the MGS went away")

    keeper.pools = Failing(str(site.lctl))
    (done,) = keeper.apply(system(site.bed, _3="sick"))
    assert done.failed and site.members() == [0, 1]
    (done,) = site.keeper().apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7] and done.theirs == {}
    assert site.keeper().undo()[0][1] == "removed: it was not there before"


def test_of_two_file_systems_each_has_its_pool_and_one_that_fails_holds_up_no_other(site: Site) -> None:
    """The other one is of another MGS, say: what is its is not done, and said."""
    audit = Path(site.settings.state.pool).parent / "audit.log"
    (other,) = system(site.bed).views
    both = Whole((msgspec.structs.replace(other, fs_name="flash"), *system(site.bed, _3="sick").views))
    keeper = site.keeper(audit=audit)
    flash, lustre = keeper.apply(both)
    assert flash.failed and lustre.done and site.members() == [0, 1, 2, 4, 5, 6, 7]
    assert {change.ost for change in lustre.round.add} == {0, 1, 2, 4, 5, 6, 7}
    undone = {pool: done for pool, _, done in keeper.undo()}
    assert undone["lustre.good"] and "good" not in site.bed.pools
    lines = [line.partition(" ")[2] for line in audit.read_text().splitlines() if "lustre.good" in line]
    assert lines[0] == 'pool="lustre.good" adding=0,1,2,4,5,6,7 why="made"'
    assert lines[1] == 'pool="lustre.good" added=0,1,2,4,5,6,7 why="made"'
    assert lines[-1] == 'pool="lustre.good" destroyed=- why="undo"'


def test_apply_by_hand_beside_a_keeper_forgets_its_waits_too(site: Site) -> None:
    """The keeper kept what it remembered of an OST, and wrote that over what the command had noted."""
    keeper = site.keeper()
    for verdicts in ({}, {"_3": "sick"}):
        keeper.apply(system(site.bed, **verdicts))
        site.now_s += 60
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    site.keeper().apply(system(site.bed), anew=True)
    assert site.members() == list(range(8))
    for _ in range(3):
        site.now_s += 60
        keeper.apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7], "no wait of before the command holds it"
    site.keeper().apply(system(site.bed), anew=True)
    site.keeper().apply(system(site.bed, _5="sick"), anew=True)
    assert site.members() == [0, 1, 2, 3, 4, 6, 7]
    site.now_s += 15 * 60
    keeper.apply(system(site.bed))
    site.now_s += 11 * 60
    keeper.apply(system(site.bed))
    assert site.members() == [0, 1, 2, 3, 4, 6, 7], "it left so lately that it waits an hour"
