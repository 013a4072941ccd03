"""A pool of good OSTs that somebody else changes too: what is his stays his."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tarazu.daemons.asking import Whole
from tarazu.parts.pool import commands as pool_command
from tarazu.parts.pool.choosing import HOUR_S
from tarazu.parts.pool.lctl_pool import LctlPool

from .case import Keeper, Late, Site, system


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
