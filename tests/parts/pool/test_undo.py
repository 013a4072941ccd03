"""A pool of good OSTs that is taken back: by undo, and while the site is stopped."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

import pytest

from tarazu.parts.pool.choosing import HOUR_S
from tarazu.parts.pool.lctl_pool import LctlPool

from .case import Late, Site, system


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
