"""What cases of the part's levers have in common: those that only set what the settings list."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tarazu import config
from tarazu.parts.council.agent import agent_of
from tests.parts.changes.parameters import ParametersCase


class LearningCase(ParametersCase):
    agent_of = agent_of
    levers: ClassVar[tuple[str, ...]]
    """As `part.council.levers` lists them."""

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        self.settings = config.override(self.settings, "part.council", levers=self.levers)
