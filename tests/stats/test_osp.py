"""What the MDS's connections to the OSTs say of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tarazu.stats import osp

FULL = """current_state: FULL
state_history:
 - [ 1795165909, CONNECTING ]
 - [ 1795165910, DISCONN ]
 - [ 1795165919, FULL ]
"""


def write(root: Path, device: str, **values: object) -> None:
    for name, value in values.items():
        where = "sys/kernel/debug/lustre" if name == "state" else "sys/fs/lustre"
        path = root / where / "osp" / device / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


def test_the_current_state_counts_and_not_the_history() -> None:
    assert osp.parse_state(FULL) == "FULL"
    assert osp.parse_state("current_state: REPLAY_WAIT\n") == "REPLAY_WAIT"
    assert osp.parse_state("") == osp.parse_state("state_history:\n - [ 1, FULL ]\n") == ""


def test_a_target_is_lost_when_one_mdt_of_several_has_lost_it(tmp_path: Path) -> None:
    write(tmp_path, "scratch-OST001f-osc-MDT0000", state=FULL)
    write(tmp_path, "scratch-OST001f-osc-MDT0001", state="current_state: DISCONN")
    write(tmp_path, "scratch-OST0001-osc-MDT0000", state="current_state: IDLE")
    write(tmp_path, "other-OST0001-osc-MDT0000", state="current_state: CONNECTING")
    write(tmp_path, "scratch-MDT0001-osp-MDT0000", state="current_state: DISCONN")
    seen = osp.Osps(tmp_path).look()
    assert seen.lost == {("scratch", 31): "DISCONN", ("other", 1): "CONNECTING"}
    assert seen.known == {("scratch", 31), ("scratch", 1), ("other", 1)}


def test_full_and_refusing_targets_are_told_apart(tmp_path: Path) -> None:
    healthy = {"state": FULL, "active": 1, "max_create_count": 20000, "prealloc_status": 0}
    for index, change in enumerate(
        ({}, {"prealloc_status": -28}, {"prealloc_status": -110}, {"max_create_count": 0}, {"active": 0})
    ):
        write(tmp_path, f"scratch-OST{index:04x}-osc-MDT0000", **{**healthy, **change})
    seen = osp.Osps(tmp_path).look()
    assert not seen.lost
    assert seen.full == {("scratch", 1)}
    assert {index: why.split()[0] for (_, index), why in seen.refusing.items()} == {
        2: "prealloc_status",
        3: "max_create_count",
        4: "inactive",
    }


def test_a_connection_that_is_being_made_anew_is_lost_and_not_refusing(tmp_path: Path) -> None:
    """Its state is FULL again before objects can be made: Lustre itself waits for that."""
    for index, error in enumerate((-11, -19, -107, -30)):
        write(tmp_path, f"scratch-OST{index:04x}-osc-MDT0000", state=FULL, prealloc_status=error)
    write(tmp_path, "scratch-OST0001-osc-MDT0001", state="current_state: DISCONN", prealloc_status=-19)
    seen = osp.Osps(tmp_path).look()
    assert {index: why for (_, index), why in seen.lost.items()} == {
        0: "prealloc_status EAGAIN",
        1: "DISCONN",
        2: "prealloc_status ENOTCONN",
    }
    assert seen.refusing == {("scratch", 3): "prealloc_status EROFS"} and not seen.full


def test_what_lod_has_given_up_is_inactive_and_used_again_at_the_next_look(tmp_path: Path) -> None:
    write(tmp_path, "scratch-OST001f-osc-MDT0000", active=0, state="current_state: DISCONN")
    lod = tmp_path / "sys/kernel/debug/lustre/lod/scratch-MDT0000-mdtlov/target_obd"
    lod.parent.mkdir(parents=True)
    lod.write_text("0: scratch-OST0000_UUID ACTIVE\n3: scratch-OST0003_UUID INACTIVE\n")
    osps = osp.Osps(tmp_path)
    assert osps.look().refusing == {("scratch", 31): "inactive", ("scratch", 3): "inactive"}
    lod.write_text("0: scratch-OST0000_UUID ACTIVE\n3: scratch-OST0003_UUID ACTIVE\n")
    write(tmp_path, "scratch-OST001f-osc-MDT0000", active=1, state=FULL)
    assert osps.look() == osp.TargetTrouble(frozenset({("scratch", 31)}), {}, frozenset(), {})


def test_the_captured_connections(data: Path) -> None:
    seen = osp.Osps(data / "mds").look()
    assert ("lustre", 1) in seen.known and seen == osp.TargetTrouble(seen.known, {}, frozenset(), {})


@pytest.mark.parametrize("version", ["2.12", "2.15", "2.16"])
def test_every_version_tells_what_is_amiss(data: Path, version: str) -> None:
    seen = osp.Osps(data / f"versions/{version}-ldiskfs/mds").look()
    assert seen.full == {("scratch", 2)}
    assert seen.refusing[("scratch", 3)] == "inactive"
    assert ("scratch", 0) in seen.known and ("scratch", 0) not in seen.lost


def test_nothing_is_inferred_where_there_is_no_mds_or_a_file_says_nothing(tmp_path: Path) -> None:
    assert osp.Osps(tmp_path).look() == osp.NOTHING
    write(tmp_path, "scratch-OST0001-osc-MDT0000", state="", prealloc_status="nonsense")
    write(tmp_path, "scratch-OST0002-osc-MDT0000", state="", prealloc_status="9" * 20)
    assert osp.Osps(tmp_path).look() == osp.NOTHING


def test_a_look_at_a_thousand_targets_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(1000):
        write(tmp_path, f"scratch-OST{index:04x}-osc-MDT0000", state=FULL, active=1)
    osps = osp.Osps(tmp_path)
    assert len(osps.look().known) == 1000
    monkeypatch.setattr(osp, "IN_TURN", 0)
    before = time.thread_time()
    for _ in range(3):
        osps.look()
    each_s = (time.thread_time() - before) / 3
    assert each_s < 0.08, "10 ms on a busy machine, every 2 s"


def test_a_connection_to_another_mdt_is_no_ost(tmp_path: Path) -> None:
    write(tmp_path, "scratch-OST0001-osc-MDT0000", state=FULL, active=1)
    write(tmp_path, "scratch-MDT0001-osp-MDT0000", state="current_state: CONNECTING\n", active=1)
    seen = osp.Osps(tmp_path).look()
    assert seen.known == {("scratch", 1)} and not seen.lost and not seen.refusing
