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


def test_nothing_is_inferred_where_there_is_no_mds_or_a_file_says_nothing(tmp_path: Path) -> None:
    assert osp.Osps(tmp_path).look() == osp.NOTHING
    write(tmp_path, "scratch-OST0001-osc-MDT0000", state="", prealloc_status="nonsense")
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
