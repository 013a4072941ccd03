"""MDTs that others have lost."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.mdt.connections import Connections
from tests.stats.test_osp import FULL, write


def test_an_mdt_that_another_one_has_lost_is_away(tmp_path: Path) -> None:
    assert Connections(tmp_path).look() == {}
    write(tmp_path, "scratch-OST0001-osc-MDT0000", state=FULL, active=1)
    write(tmp_path, "scratch-MDT0001-osp-MDT0000", state="current_state: CONNECTING\n", active=1)
    write(tmp_path, "scratch-MDT0002-osp-MDT0000", state=FULL, active=0)
    write(tmp_path, "scratch-MDT0003-osp-MDT0000", state=FULL, active=1)
    seen = Connections(tmp_path).look()
    assert seen == {("scratch", 1): "dead: CONNECTING", ("scratch", 2): "inactive"}
