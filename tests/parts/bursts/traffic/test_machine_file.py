"""Where nodes stand: the site's own file, and Slurm's topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.parts.bursts.traffic import machine as machines


def test_a_file_of_the_sites_own(tmp_path: Path) -> None:
    path = tmp_path / "machine"
    path.write_text("# ours\nn[1-2] cabinet=c1 io_node=r1\nn3 io_node=r2 # no cabinet\nlogin1 cabinet=c1\n")
    machine = machines.read(path)
    assert machine.nodes == ("n1", "n2", "n3", "login1")
    assert (machine.cabinets, machine.io_nodes) == (("c1",), ("r1", "r2"))
    assert machine.cabinet.tolist() == [0, 0, -1, 0] and machine.served_by.tolist() == [0, 0, 1, -1]


@pytest.mark.parametrize("level", ["", " Level=0 LinkSpeed=1"], ids=["file", "shown"])
def test_leaf_switches_are_cabinets(level: str) -> None:
    machine = machines.parse(
        f"SwitchName=s1{level} Nodes=n[1-2]\nSwitchName=s2{level} Nodes=n[3-4]\n"
        f"SwitchName=top{level.replace('0', '1')} Nodes=n[1-4] Switches=s[1-2]\n",
        "topology",
    )
    assert machine.nodes == ("n1", "n2", "n3", "n4") and machine.cabinets == ("s1", "s2")
    assert machine.cabinet.tolist() == machine.served_by.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n1\n",
        "n1 cabinet=\n",
        "n1 rack=3\n",
        "n[1-3] cabinet=c\nn2 cabinet=d\n",
        "SwitchName=a Switches=b\n",
    ],
    ids=["empty", "nothing", "no-name", "other-word", "twice", "no-leaf"],
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="machine"):
        machines.parse(text, "machine")
