"""When mdsd takes an OST for dead, sick or well again: at once for plans, after a second look for running steps."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from tarazu.daemons.mdsd import health as module
from tarazu.daemons.mdsd.health import Health, of_report, word
from tarazu.model import Ost, SystemView
from tarazu.stats import osp

FS = "lustre"
OSTS = tuple(Ost(index, f"oss{index // 2}", 1 << 40, 1 << 39, 1 << 39) for index in range(4))
VIEW = SystemView(FS, 0.0, OSTS)
WELL = osp.TargetTrouble(frozenset((FS, i) for i in range(4)), {}, frozenset(), {})
LOST = WELL._replace(lost={(FS, 2): "CONNECTING", (FS, 3): "DISCONN"})


class Clocked:
    """Health at the test's own times; its looks are given."""

    def __init__(self, root: Path) -> None:
        self.health = Health(str(root))
        self.view = VIEW

    def at(self, now: float, seen: osp.TargetTrouble) -> dict[int, str]:
        """What changes of it: index → kind."""
        self.health.looker.seen = seen
        self.health.looker.count += 1
        changes = self.health.update(lambda: [self.view], now, promised=True)
        return {change.target[1]: word(change.now) for change in changes}

    def usable(self) -> list[int]:
        return [ost.index for ost in self.health.apply(self.view).osts if ost.usable]


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    return Clocked(tmp_path)


def test_plans_avoid_a_lost_target_at_once_and_running_steps_hear_of_it_after_a_second_look(
    clocked: Clocked,
) -> None:
    assert clocked.at(100.0, WELL) == {} and clocked.usable() == [0, 1, 2, 3]
    assert clocked.at(102.0, LOST) == {} and clocked.usable() == [0, 1]
    assert clocked.health.looker.every_s <= 1.0, "the second look comes soon"
    assert clocked.at(103.0, LOST) == {2: "dead", 3: "dead"}
    assert clocked.at(105.0, LOST) == {}
    status = clocked.health.status(FS)
    assert {index: (of["health"], of["why"]) for index, of in status.items()} == {
        "2": ("dead", "CONNECTING"),
        "3": ("dead", "DISCONN"),
    }


def test_a_connection_lost_for_a_moment_throws_out_no_plan(clocked: Clocked) -> None:
    for now in range(100, 140, 4):
        assert clocked.at(now, LOST) == {}
        assert clocked.at(now + 0.5, WELL) == {}
    assert clocked.usable() == [0, 1, 2, 3]


def test_a_target_that_comes_back_is_used_again_once_it_stays(clocked: Clocked) -> None:
    clocked.at(100.0, LOST)
    clocked.at(101.0, LOST)
    assert clocked.at(110.0, WELL) == {} and clocked.usable() == [0, 1]
    assert clocked.at(111.0, LOST) == {} and clocked.at(112.0, WELL) == {}
    assert clocked.at(113.0, WELL) == {}
    assert clocked.at(114.0, WELL) == {2: "", 3: ""}, "with a look every 2 s, less than 5 s after it is well"
    assert clocked.usable() == [0, 1, 2, 3] and not clocked.health.status(FS)


def test_one_that_comes_and_goes_has_to_stay_longer_each_time_and_is_never_stuck(clocked: Clocked) -> None:
    now, changes = 100.0, 0
    for _ in range(30):
        for seen in (LOST, LOST, WELL, WELL, WELL):
            changes += bool(clocked.at(now, seen))
            now += 1.0
    assert changes <= 7, "running steps are told three times that it is back, and no more"
    while clocked.usable() != [0, 1, 2, 3]:
        clocked.at(now, WELL)
        now += 1.0
    assert now < 290.0
    clocked.at(now + 100.0, WELL)
    clocked.at(now + 101.0, LOST)
    clocked.at(now + 102.0, LOST)
    clocked.at(now + 103.0, WELL)
    assert clocked.at(now + 105.0, WELL) == {2: "", 3: ""}, "after a minute that is forgotten"


def test_what_the_administrator_closes_or_is_full_counts_at_once(clocked: Clocked) -> None:
    seen = WELL._replace(full=frozenset({(FS, 0)}), refusing={(FS, 1): "max_create_count 0"})
    assert clocked.at(100.0, seen) == {0: "full", 1: "refusing"}
    assert clocked.usable() == [2, 3]


def test_all_who_ask_whether_an_ost_is_sick_hear_the_same() -> None:
    for speed, sick in ((None, False), (0.6, False), (0.4, True), (0.002, True)):
        ost = msgspec.structs.replace(OSTS[0], relative_speed=speed)
        assert (of_report(ost, connected=True).verdict == "sick") is sick


def test_silence_of_an_ossd_is_no_death_where_the_mds_is_connected() -> None:
    stale = msgspec.structs.replace(OSTS[0], stale=True)
    assert of_report(stale, connected=True).well
    assert of_report(stale, connected=False).verdict == "silent"


def test_a_look_that_hangs_holds_up_one_plan_for_half_a_second_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    class Hanging(osp.Osps):
        def look(self) -> osp.TargetTrouble:
            release.wait(120)
            return WELL

    health = Health(str(tmp_path))
    health.looker._osps = Hanging(tmp_path)
    health.start()
    try:
        health.looker.fresh()
        monkeypatch.setattr(module, "PATIENCE_S", 3600.0)
        for _ in range(4):
            health.looker.fresh()
        assert health.looker.count == 0, "it still hangs"
    finally:
        release.set()
        health.stop()
