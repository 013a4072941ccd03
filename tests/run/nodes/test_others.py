"""Nodes that do not share the map directory: what the job's line says of them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tarazu.config import RunSettings
from tarazu.errors import TarazuError
from tarazu.model import JobStep
from tarazu.run.nodes.each_node import EachNode
from tarazu.run.nodes.others import OtherNodes
from tests.run.nodes.conftest import Node, write_maps


def others(maps: Path, each: EachNode | None) -> OtherNodes:
    made = OtherNodes(RunSettings(), "place", ["app"], {}, maps)
    made._each = each
    return made


def test_the_line_names_who_does_not_share_and_who_missed_later_plans(node: Node, tmp_path: Path) -> None:
    write_maps(node.map, 10)
    (tmp_path / "control").touch()
    name = os.uname().nodename
    spool = node.copy / "tarazu-0" / "step"
    told = f"{tmp_path} is not shared by"

    def ended(
        made: OtherNodes, map_dir: Path, generation: int, *, lost: int = 0, recorded: bool = True
    ) -> list[str]:
        if recorded:
            spool.mkdir(parents=True, exist_ok=True)
            (spool / "n2.ended.tzs").write_bytes(b"some")
        step, dest = JobStep("lustre", 0, "app", "1", ranks=4), Path(tempfile.mkdtemp(dir=tmp_path))
        _, problem = made.gather(node.spool, Path(node.spool), map_dir, dest, step)
        assert (problem, spool.exists()) == ("", False), "fetching removes it"
        return made.problems(generation, lost)

    def made() -> OtherNodes:
        return others(tmp_path, node.each(True))

    assert ended(made(), node.map, 2) == [f"{told} {name} (run.map_dir)"]
    assert ended(made(), node.map, 2, lost=3, recorded=False) == [], "who ran nothing missed nothing"
    assert ended(made(), tmp_path, 2) == []
    for generation, problems in (
        (1, []),
        (2, [f"later plans did not reach {name}: {told} them (run.map_dir)"]),
    ):
        sent = made()
        sent.send(node.spool, node.map, node.map, 1, 20.0)
        assert ended(sent, node.map, generation) == problems
    late = made()
    with pytest.raises(TarazuError, match="no time was left"):
        late.send(node.spool, node.map, node.map, 1, 0.01)
    assert ended(late, node.map, 1) == [f"{told} {name} (run.map_dir), no time was left to send the plan"]


def test_where_nobody_can_be_asked_the_line_says_how_many_ranks_have_no_map() -> None:
    for each, whom in ((None, "the nodes of 3 ranks"), (EachNode(("false",), ("n2", "n3")), "n2, n3")):
        made = others(Path("/dev/shm/maps"), each)
        assert made.problems(1, 3) == [f"/dev/shm/maps is not shared by {whom} (run.map_dir)"]
        assert made.problems(1, 0) == made.problems(0, 3) == []
