"""A pool of good OSTs on the testbed: which of them are in it, and when one comes or goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tarazu.parts.pool.choosing import HOUR_S
from tarazu.parts.pool.planner import MEMORY
from tarazu.parts.pool.planning import trouble
from tarazu.parts.pool.settings import NAME
from tarazu.sim.testbed import Testbed
from tarazu.sim.testbed.library import library_directory

from .case import Site, system

STATIC = library_directory() / "testbed" / "iorlike-static"


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
    assert site.members() is None and not Path(site.settings.state.directory, NAME).exists()


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
        "5 of 8 OSTs are sick: at most 4 may leave (part.pool.floor)"
    )
    assert [line["why"] for line in site.trail() if line["event"] == "cannot mend"][
        -1
    ] == look.cannot_mend.why


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
