"""The site's mapping of nodes to routers, as mdsd follows it: beside jobs' rules, and away when its file is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import nids
from tarazu.parts.routers import mapping_file, udsp
from tarazu.parts.routers.commands import mapping_line
from tarazu.parts.routers.planner import RETURNS_S
from tests.parts.routers.test_planner import NAMES, Planner

RULES = {
    "10.7.[0-1].[1-7/3]@tcp1": NAMES[0],
    "10.7.[0-1].[2-8/3]@tcp1": NAMES[1],
    "10.7.[0-1].[3-9/3]@tcp1": NAMES[2],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tarazu-mapping" / "mapping.json"


@pytest.fixture
def planner(tmp_path: Path, path: Path) -> Iterator[Planner]:
    made = Planner(tmp_path / "audit.log", state=tmp_path)
    yield made
    made.plan.close()


def write(path: Path, rules: dict[str, str]) -> None:
    mapping_file.write(path, "folded", [udsp.rule(dst, rte) for dst, rte in rules.items()])


def told(planner: Planner, *down: str, **more: object) -> dict[str, str]:
    return {rule.dst: rule.rte for rule in planner.ask(*down, **more).rules}


def test_it_is_told_to_servers_and_taken_away_with_its_file(planner: Planner, path: Path) -> None:
    planner.ask()
    write(path, RULES)
    planner.settle(20.0)
    assert planner.ask().mode == "learning", "jobs may have rules for these nodes"
    planner.settle(100.0)
    assert told(planner) == RULES
    shown = planner.plan.status(planner.now)["mapping"]
    assert (shown["how"], shown["nodes"], shown["rules"]) == ("folded", 18, {"tcp to tcp1": 3})
    write(path, dict(list(RULES.items())[:1]))
    planner.settle()
    assert len(told(planner)) == 1
    assert mapping_file.remove(path)
    planner.settle()
    assert told(planner) == {}
    assert planner.plan.status(planner.now)["mapping"] is None
    lines = [line for line in planner.path.read_text().splitlines() if "what=mapping" in line]
    assert [line.partition("how=")[2].split()[0] for line in lines] == ['"folded"', '"folded"', '""']
    assert "nodes=18 rules=3" in lines[0]


def test_nodes_of_a_job_have_its_rule_alone(planner: Planner, path: Path) -> None:
    planner.ask()
    write(path, RULES)
    planner.settle(100.0)
    planner.tell("a", "10.7.1.[1-2]@tcp1")
    planner.settle()
    found = told(planner)
    assert found.pop("10.7.1.[1-2]@tcp1") in NAMES
    assert found.pop("10.7.[0-1].[3-9/3]@tcp1") == NAMES[2], "no node of the job was in this one"
    nodes = [nid for dst in found for nid in nids.unfold(dst)]
    assert len(nodes) == len(set(nodes)) == 10
    assert not {str(nid) for nid in nodes} & {"10.7.1.1@tcp1", "10.7.1.2@tcp1"}
    planner.plan.nodes.ended("a")
    planner.settle()
    assert told(planner) == RULES


def test_a_router_that_is_down_serves_nobody_until_it_is_back_for_a_while(
    planner: Planner, path: Path
) -> None:
    planner.ask()
    write(path, RULES)
    planner.settle(100.0)
    planner.ask(NAMES[1])
    planner.settle()
    assert set(told(planner, NAMES[1]).values()) == {NAMES[0], NAMES[2]}
    shown = mapping_line(planner.plan.status(planner.now)["mapping"])
    assert shown.endswith("18 nodes; tcp to tcp1: 2 rules for 12 of them"), "the others are not passed over"
    planner.ask()
    planner.settle(RETURNS_S + 20)
    assert told(planner) == RULES


def test_a_server_that_speaks_late_keeps_its_mapping(planner: Planner, path: Path) -> None:
    """mdsd was started anew, and has learned what it can before this server asks: that is no word to take it back."""
    write(path, RULES)
    planner.settle(100.0)
    assert planner.ask().mode == "learning"
    planner.settle()
    assert told(planner) == RULES


def test_servers_on_another_network_are_told_nothing(planner: Planner, path: Path) -> None:
    planner.ask()
    write(path, RULES)
    planner.settle(100.0)
    assert told(planner, oss="oss9", routers=()) == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"not json", "expected a mapping that"),
        (b"\xff\xfe", "expected a mapping that"),
        ({"format": 2}, "expected format 1"),
        ({"rules": [["10.7.0.1@tcp1", "nonsense"]]}, "expected NIDs such as"),
        ({"rules": [["10.*.*.*@tcp1", "10.0.0.1@tcp"]]}, "expected at most 200000 nodes"),
        (
            {"rules": [["10.7.0.[1-4]@tcp1", "10.0.0.1@tcp"], ["10.7.0.4@tcp1", "10.0.0.2@tcp"]]},
            "10.7.0.4@tcp1 twice",
        ),
        ({"rules": [["10.7.0.1@tcp1", "10.0.0.1@tcp"]] * 5000}, "expected at most 4096 rules"),
        (b" " * (5 << 20), "expected a file of at most"),
    ],
    ids=["text", "bytes", "format", "router", "nodes", "twice", "rules", "long"],
)
def test_a_file_that_is_none_of_ours_is_not_followed(
    planner: Planner, path: Path, content: bytes | dict[str, object], says: str
) -> None:
    path.parent.mkdir()
    whole = {"format": 1, "how": "x", "made": "", "uid": 0, "rules": []}
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(whole | content).encode())
    planner.ask()
    planner.settle(100.0)
    assert told(planner) == {}
    assert says in planner.plan.status(planner.now)["mapping"]["problem"]
    write(path, RULES)
    planner.settle()
    assert told(planner) == RULES, "it is looked at again"


def test_what_a_killed_command_left_is_no_mapping(planner: Planner, path: Path) -> None:
    """Killed before the rename: the part is not read, and goes with the next one that is written."""
    path.parent.mkdir()
    part = path.parent / f".{path.name}.0123abcd.part"
    part.write_bytes(b'{"format": 1, "how": "to')
    planner.ask()
    planner.settle(100.0)
    assert told(planner) == {} and planner.plan.status(planner.now)["mapping"] is None
    write(path, RULES)
    assert not part.exists() and path.stat().st_mode & 0o777 == 0o644, "mdsd is another user"
    assert mapping_file.remove(path) and not mapping_file.remove(path)
