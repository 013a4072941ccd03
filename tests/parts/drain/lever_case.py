"""A server with two OSTs, and an MDS's `osp` of one of them, that get no new files for a while."""

from __future__ import annotations

import shutil
from pathlib import Path

from tarazu.parts.changes.model.change import Change
from tarazu.parts.drain import agent as drains
from tests.parts.changes.parameters import ParametersCase, wish

OSTS = ("obdfilter.lustre-OST0000.degraded", "obdfilter.lustre-OST000a.degraded")
OSP = "osp.lustre-OST000a-osc-MDT0000.max_create_count"


class DrainCase(ParametersCase):
    name = "drain"
    agent_of = drains.agent_of

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        self.place = root / "sys/fs/lustre"
        if not self.place.exists():
            self.boot()

    def path(self, parameter: str) -> Path:
        return self.place / parameter.replace(".", "/")

    def wishes(self) -> list[list[Change]]:
        return [
            [wish("drain", "1", OSTS[0])],
            [wish("drain", "1", OSTS[1]), wish("drain", "0", OSP)],
            [wish("drain", "1", ost) for ost in OSTS],
        ]

    def now(self) -> dict[str, str]:
        return {name: self.path(name).read_text().strip() for name in (*OSTS, OSP)}

    def administrator(self, number: int) -> None:
        if number % 2:
            assert self.lctl(OSP, str(100 + number)) == 0
        else:
            assert self.lctl(OSTS[number // 2 % 2], "0") == 0

    def boot(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        for name in (*OSTS, OSP):
            self.path(name).parent.mkdir(parents=True)
            self.path(name).write_text("20000\n" if name == OSP else "0\n")


CASES = (DrainCase,)
