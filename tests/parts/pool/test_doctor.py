"""What `tarazu doctor` says of the part."""

from __future__ import annotations

from pathlib import Path

from tarazu import config
from tests.doctor.conftest import Tree


def test_its_unit_is_wanted_on_the_node_of_the_mgs(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert not tree.look("units", "mgs")
    tree.settings = config.Settings(
        **{**vars(tree.settings), "part": config.PartTables({"pool": {"mode": "apply"}})}
    )
    found = tree.look("units", "mgs", environ={"PATH": ""})
    assert found["tarazu-pool"].verdict == "fail" == found["lctl"].verdict
