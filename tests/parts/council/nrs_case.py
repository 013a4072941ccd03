"""An OSS: the policy that orders its requests, and one rule that limits some of them."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.changes.model.change import Change
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables
from tests.parts.changes.parameters import wish
from tests.parts.council.learning_case import LearningCase

IO = "ost.OSS.ost_io"


class NrsCase(LearningCase):
    name = "nrs"
    levers = ("nrs",)

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        if not (root / stand_in.IO).exists():
            self.boot()

    def wishes(self) -> list[list[Change]]:
        return [[wish("nrs", "crrn 32")], [wish("nrs", "trr 64")], [wish("nrs", "orr 256")]]

    def now(self) -> dict[str, str]:
        """Queue → all that is set of it."""
        facts = stand_in.Nrs(str(self.root)).facts
        return {q: str(sorted(fact for fact in facts.items() if fact[0][0] == q)) for q in stand_in.QUEUES}

    def administrator(self, number: int) -> None:
        queue, prefix = (("", ""), (" hp", "hp_quantum:"))[number % 2]
        assert self.lctl(f"{IO}.nrs_policies", f"trr{queue}") == 0
        assert self.lctl(f"{IO}.nrs_trr_quantum", f"{prefix}{1000 + number}") == 0

    def boot(self) -> None:
        tunables.make_oss(self.root)
