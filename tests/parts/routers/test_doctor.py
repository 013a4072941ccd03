"""What `tarazu doctor` says of the part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.conftest import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_its_unit_is_wanted_where_rules_are_set(tree: Tree) -> None:
    assert "tarazu-ossd-routers" not in tree.look("units", "oss")
    tree.put("part.routers", mode="apply")
    found = tree.look("units", "oss", environ={"PATH": ""})
    assert found["tarazu-ossd-routers"].verdict == "fail" == found["lnetctl"].verdict


def test_rules_that_are_left_behind_are_named(tree: Tree) -> None:
    rules = Path(tree.settings.state.directory) / "tarazu-routers"
    rules.mkdir()
    (rules / "changes.json").touch()
    assert (
        tree.look("left behind")["tarazu-ossd state"].mend == "tarazu change list; tarazu change undo --all"
    )
    tree.write("proc/77/cmdline", "/usr/bin/python3\0/usr/bin/tarazu-ossd\0--routers\0")
    assert "tarazu-ossd state" not in tree.look("left behind")
