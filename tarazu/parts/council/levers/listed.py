"""What levers of parameters that learn have in common: they set what `part.council.levers` lists, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tarazu.errors import BadInput
from tarazu.parts.changes.lctl import Lctl
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.lever import Lever


class ListedLever(Lever):
    seen_by: ClassVar[str] = "time"

    def __init__(self, name: str, values: Collection[str], lctl: Lctl, root: str | Path) -> None:
        self.name, self.values, self.lctl, self.root = name, tuple(values), lctl, root

    def shown(self, parts: Sequence[Part]) -> str:
        """The value that is in force; where parts differ all of them."""
        return ", ".join(dict.fromkeys(part.value for part in parts))

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        for value in wanted.values():
            if value not in self.values:
                listed = ", ".join(self.values) or "nothing"
                raise BadInput(f"part.council.levers: {self.name}", f"one of: {listed}", value)
