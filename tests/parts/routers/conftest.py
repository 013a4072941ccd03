"""A server's rules as a program beside us keeps them: the testbed's stand-in for lnetctl, with the captured answers."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tarazu.parts.routers import udsp
from tarazu.parts.routers.udsp import Rule, Udsp
from tarazu.sim.testbed.daemons import lnetctl_command, stand_ins
from tarazu.sim.testbed.routers import rules_of
from tarazu.sim.testbed.statfiles import lnet_routes
from tests.daemons.conftest import Site

NAMES = ("src", "dst", "rte", "priority")
FOREIGN = {"src": "tcp", "priority": 0}
GATEWAYS = ("10.77.0.11@tcp", "10.77.0.12@tcp")
A, B, C = (udsp.rule(f"10.77.64.{n}@tcp1", GATEWAYS[0]) for n in (1, 2, 3))


class Server:
    """One OSS: its rules and routes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.command = lnetctl_command(root)
        (root / "lnet").mkdir(parents=True)
        self.set_routes()
        self.foreign(FOREIGN)

    def here(self) -> None:
        """This process, and those that it starts, are on it."""
        os.environ.update(stand_ins(self.root, lnetctl=self.command))

    def set_routes(self, *down: str) -> None:
        path = self.root / "sys/kernel/debug/lnet/routes"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lnet_routes(False, [("tcp1", gateway, gateway not in down) for gateway in GATEWAYS]))

    def foreign(self, *rules: Mapping[str, object]) -> None:
        """From now on these are all rules that are set."""
        lines = ["\t".join(str(rule.get(name, "")) for name in NAMES) + "\n" for rule in rules]
        (self.root / "lnet" / "rules").write_text("".join(lines))

    def lnetctl(self, *words: str) -> str:
        command = [*shlex.split(self.command), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def shown(self) -> tuple[Udsp, ...]:
        """What is in force, as the stand-in's own file has it: asking it would take a process each time."""
        found = enumerate(rules_of(self.root))
        return tuple(Udsp(idx, *rule[:3], int(rule[3]) if rule[3] else None) for idx, rule in found)

    def rules(self) -> list[Rule]:
        """Without those that cannot be tarazu's."""
        return [rule for each in self.shown() if (rule := each.rule)]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "oss1")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.stop()
