"""The keeper of a pool on the testbed: what it sets, what it takes back, after a crash too, and what is others'."""

from __future__ import annotations

import io
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
from tarazu.daemons.pool.calls import MOST_OSTS, Pools, words
from tarazu.daemons.pool.keeper import HELD, Keeper
from tarazu.daemons.pool.notes import NAME
from tarazu.errors import StoreError, Unavailable
from tarazu.pools.choosing import HOUR_S
from tarazu.sim.testbed import Testbed, lctl_pools
from tarazu.sim.testbed.library import library_directory
from tarazu.wire.overview import Overview, Target, Verdict

STATIC = library_directory() / "testbed" / "iorlike-static"


def system(bed: Testbed, now_s: float = 1e9, **verdicts: Verdict) -> Overview:
    """All well but those that are named, as `_3="sick"`, since long."""
    named = {int(name[1:]): verdict for name, verdict in verdicts.items()}
    targets = [
        Target("lustre", i, oss, 10, 9, 9, True, verdict=named.get(i, "ok"), since_s=1.0 if i in named else None)
        for i, oss in enumerate(bed.oss_of_ost)
    ]  # fmt: skip
    return Overview(now_s, (), tuple(targets))


class Site:
    def __init__(self, bed: Testbed, directory: Path) -> None:
        self.bed, self.now_s, self.stopped = bed, 1e9, ""
        self.settings = config.override(
            config.Settings(), "pool",
            lctl=str(bed.directory / "mds/bin/lctl"), state=str(directory / "state"), mode="apply",
        )  # fmt: skip

    def keeper(self, **changes: Any) -> Keeper:
        settings = config.override(self.settings, "pool", **changes)
        return Keeper(settings, stopped=lambda: self.stopped, clock=lambda: self.now_s)

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
    assert site.members() is None and not Path(site.settings.pool.state).exists()


def test_undo_removes_a_pool_that_was_not_there_and_pauses_the_keeper(site: Site) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7]
    keeper.notes.hold(True)
    assert keeper.undo() == [("lustre.good", "removed: it was not there before", True)]
    assert "good" not in site.bed.pools and not (Path(site.settings.pool.state) / NAME).exists()
    (done,) = site.keeper().apply(system(site.bed))
    assert done.round.nothing == HELD and "good" not in site.bed.pools


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
    calls = Pools(site.settings.pool.lctl)
    calls.change("lustre", "good", "pool_add", [3])
    calls.change("lustre", "good", "pool_remove", [5])
    for _ in range(2):
        site.now_s += 2 * HOUR_S
        (done,) = keeper.apply(system(site.bed, _3="sick"))
        assert site.members() == [0, 1, 2, 3, 4, 6, 7] and done.theirs == {3: "in", 5: "out"}
    assert site.keeper().undo() == [
        ("lustre.good", "0 OSTs added, 6 removed; stays: somebody else has put OSTs into it", True)
    ]
    assert site.members() == [3]


def test_apply_makes_it_ours_again_and_a_pool_that_was_removed_is_not_made_again_by_itself(
    site: Site,
) -> None:
    keeper = site.keeper()
    keeper.apply(system(site.bed))
    Pools(site.settings.pool.lctl).change("lustre", "good", "pool_remove", [5])
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
        "from tarazu.wire.overview import Overview\n"
        "seen = msgspec.json.decode(sys.argv[3], type=Overview)\n"
        "settings = config.override(config.Settings(), 'pool', lctl=sys.argv[1], state=sys.argv[2])\n"
        "Keeper(settings, stopped=lambda: '', clock=lambda: 1e9).apply(seen)\n"
    )
    seen = msgspec.json.encode(system(site.bed, _3="sick")).decode()
    site.bed.set_pool_delay(0.3)
    words = [sys.executable, "-c", script, site.settings.pool.lctl, site.settings.pool.state, seen]
    child = subprocess.Popen(words)
    note = Path(site.settings.pool.state) / NAME
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
    Path(site.settings.pool.state, NAME).write_text("[1]")
    with pytest.raises(StoreError, match="what pools were before tarazu changed them"):
        site.keeper().apply(system(site.bed))
    assert "good" not in site.bed.pools


def test_without_lctl_or_off_the_mgs_nothing_is_noted(site: Site) -> None:
    (done,) = site.keeper(lctl="/nowhere/lctl").apply(system(site.bed))
    assert "/nowhere/lctl" in done.failed and not (Path(site.settings.pool.state) / NAME).exists()


def test_a_pool_of_another_ones_osts(site: Site) -> None:
    seen = system(site.bed, _2="sick")
    flash = [
        msgspec.structs.replace(t, pools=("flash",) if t.index in (1, 2, 3) else ()) for t in seen.targets
    ]
    site.keeper(of="flash").apply(Overview(1e9, (), tuple(flash)))
    assert site.members() == [1, 3]


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

    keeper.pools = Failing(site.settings.pool.lctl)
    (done,) = keeper.apply(system(site.bed, _3="sick"))
    assert done.failed and site.members() == [0, 1]
    (done,) = site.keeper().apply(system(site.bed, _3="sick"))
    assert site.members() == [0, 1, 2, 4, 5, 6, 7] and done.theirs == {}
    assert site.keeper().undo()[0][1] == "removed: it was not there before"


def test_of_two_file_systems_each_has_its_pool_and_one_that_fails_holds_up_no_other(site: Site) -> None:
    """The other one is of another MGS, say: what is its is not done, and said."""
    audit = Path(site.settings.pool.state).parent / "audit.log"
    seen = system(site.bed, _3="sick")
    other = [msgspec.structs.replace(t, fs_name="flash", verdict="ok") for t in seen.targets]
    both = Overview(1e9, (), (*other, *seen.targets))
    keeper = site.keeper(audit_log=str(audit))
    flash, lustre = keeper.apply(both)
    assert flash.failed and lustre.done and site.members() == [0, 1, 2, 4, 5, 6, 7]
    assert {change.ost for change in lustre.round.add} == {0, 1, 2, 4, 5, 6, 7}
    undone = {pool: done for pool, _, done in keeper.undo()}
    assert undone["lustre.good"] and "good" not in site.bed.pools
    lines = [line.partition(" ")[2] for line in audit.read_text().splitlines() if "lustre.good" in line]
    assert lines[0] == 'pool="lustre.good" added=0,1,2,4,5,6,7 why="made"'
    assert lines[-1] == 'pool="lustre.good" destroyed=- why="undo"'
