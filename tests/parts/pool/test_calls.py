"""Calls of lctl for a pool of good OSTs: how they are worded, and those that fail."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from tarazu.daemons.asking import Whole
from tarazu.errors import Unavailable
from tarazu.parts.pool.calls import MOST_OSTS, words
from tarazu.parts.pool.lctl_pool import LctlPool
from tarazu.sim.testbed import lctl_pools

from .case import Site, system


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
    keeper.lever.lctl.shown_s = 0.0  # what the stand-in did is seen at once
    site.now_s += 60
    _look, done = keeper.round(system(_3="sick", _5="dead", _6="dead"))
    assert done.failed and site.members() == [0, 1, 2, 4, 5, 6, 7]
    assert json.loads(site.notes.read_bytes())["held"] == json.loads(noted)["held"]


def test_without_lctl_nothing_is_noted(site: Site) -> None:
    look, _done = site.keeper(lctl="/nowhere/lctl").round(system())
    assert "/nowhere/lctl" in look.failed and not site.notes.exists()


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
