"""A client of two OSTs, whose RPCs in flight and read-ahead are set."""

from __future__ import annotations

import shutil
from pathlib import Path

from tarazu.parts.changes.model.change import Change
from tarazu.sim.testbed import tunables
from tests.parts.changes.parameters import wish
from tests.parts.council.learning_case import LearningCase

PLACES = ("sys/fs/lustre/osc", "sys/fs/lustre/llite")
RPCS, AHEAD, PAIR = "max_rpcs_in_flight", "max_read_ahead_mb", "osc_rpcs"


class ClientCase(LearningCase):
    name = "client"
    levers = (RPCS, AHEAD)

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        if not (root / PLACES[0]).exists():
            tunables.make_client(root, "lustre", 0, 2)

    def wishes(self) -> list[list[Change]]:
        return [
            [wish(RPCS, "16")],
            [wish(RPCS, "4"), wish(AHEAD, "64")],
            [wish(AHEAD, "1024")],
        ]

    def now(self) -> dict[str, str]:
        files = [path for place in PLACES for path in (self.root / place).rglob("max_r*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_text().strip() for path in files}

    def administrator(self, number: int) -> None:
        what = ("osc.lustre-OST0000-*.max_rpcs_in_flight", "llite.*.max_read_ahead_mb")[number % 2]
        assert self.lctl(what, str(130 + number)) == 0

    def boot(self) -> None:
        for place in PLACES:
            shutil.rmtree(self.root / place, ignore_errors=True)
        tunables.make_client(self.root, "lustre", 0, 2)


class ClientPairCase(ClientCase):
    """With the size of RPCs and how many are in flight as one lever."""

    name = "client-pair"
    levers = (PAIR, AHEAD)

    def wishes(self) -> list[list[Change]]:
        return [
            [wish(PAIR, "16x128")],
            [wish(PAIR, "256x32"), wish(AHEAD, "64")],
            [wish(AHEAD, "1024")],
        ]

    def now(self) -> dict[str, str]:
        files = [
            path for place in PLACES for path in (self.root / place).rglob("max_[rp]*") if path.is_file()
        ]
        return {str(path.relative_to(self.root)): path.read_text().strip() for path in files}
