"""mdsd's node, whose mapping of nodes to routers is set by tarazu, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tarazu.parts.bursts.mapping import agent as mapping
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change
from tarazu.parts.routers import mapping_file, udsp
from tests.parts.changes.case import Case


def mapped(nodes: int) -> tuple[udsp.Rule, ...]:
    return tuple(udsp.rule(f"10.77.64.[1,{n}]@tcp1", f"10.77.0.{n}@tcp") for n in (nodes,))


class MappingCase(Case):
    name = "mapping"
    lasting = True

    def environment(self) -> dict[str, str]:
        return {"TARAZU_ROOT": str(self.root)}

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = mapping.agent_of(self.settings)
        agent.engine._stopped = stopped
        return agent

    def wishes(self) -> list[list[Change]]:
        names = (("folded", 11), ("round-robin", 12), ("contiguous", 13))
        return [
            [mapping.change_of(self.settings, how, mapped(nodes), "a test", "test")] for how, nodes in names
        ]

    def now(self) -> dict[str, str]:
        found = mapping_file.read(self._path)
        return {"mapping": mapping_file.text_of(found.how, found.rules) if found else ""}

    def administrator(self, number: int) -> None:
        """He writes one of his own, as from a backup."""
        mapping_file.write(self._path, "his", mapped(20 + number))

    @property
    def _path(self) -> Path:
        return Path(mapping_file.path_of(self.settings))


CASE = MappingCase
