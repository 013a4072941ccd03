"""What `tarazu doctor` says of the part."""

from __future__ import annotations

from pathlib import Path

from tarazu import config
from tarazu.parts.changes.store import Store
from tarazu.parts.council.settings import announcer_of
from tests.doctor.conftest import Tree


def test_what_an_announcer_has_left_behind(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    notes = Path(announcer_of(tree.settings))
    notes.mkdir()
    (notes / "changes.json").touch()
    left = tree.look("left behind")["tarazu-announcer state"]
    assert (left.verdict, left.mend) == ("warn", "tarazu change list; tarazu change undo --all")
    (notes / "changes.json").unlink()
    Store(notes).hold_by("tarazu change undo --all, ann")
    held = tree.look("left behind")["tarazu-announcer held"]
    assert held.verdict == "warn" and "held by tarazu change undo --all, ann" in held.found
    tree.write("proc/77/cmdline", "/usr/bin/python3\0/usr/bin/tarazu-announcer\0")
    assert "tarazu-announcer state" not in tree.look("left behind")


def test_the_announcers_unit_is_wanted_wherever_something_may_be_set(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert not tree.look("units", "client")
    tree.settings = config.override(
        tree.settings, "part.council", address="tcp://mds1:5774", levers=("max_rpcs_in_flight",)
    )
    found = tree.look("units", "client", environ={"PATH": ""})
    assert found["tarazu-announcer"].verdict == "fail" == found["lctl"].verdict
