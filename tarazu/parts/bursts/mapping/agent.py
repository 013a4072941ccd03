"""The agent of the mapping that mdsd follows, on mdsd's node: `tarazu change bursts remap`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from tarazu import config
from tarazu.errors import TarazuError
from tarazu.parts.bursts.mapping.lever import MappingLever
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.store import Store
from tarazu.parts.routers import mapping_file
from tarazu.parts.routers.udsp import Rule


class MappingStore(Store):
    """Beside the mapping, where mdsd can read it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent, command="tarazu change bursts remap")
        self.path = path

    def _open(self, name: str) -> int:
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        return super()._open(name)


def agent_of(settings: config.Settings, name: str = "tarazu change bursts remap") -> Agent:
    """`name`: who it is, in the trail. What stops the site does not take it back: mdsd sets nothing then."""
    path = Path(mapping_file.path_of(settings))
    return Agent(name, MappingStore(path), {MappingLever.name: MappingLever()}, settings)


def scores_of(before: float, after: float) -> tuple[Score, ...]:
    """By the share of the busiest routers, 0-1; none where it is not known to be less: then somebody wants it all the
    same.
    """
    if not 0.0 < after < 0.99 * before:
        return ()
    return (Score("evenness", before, after, "share of the busiest 10 % of the routers"),)


def cannot_mend(settings: config.Settings, why: str) -> None:
    """Told, and listed until a mapping is set; as far as that can be written down."""
    plan = Plan(cannot_mend=(CannotMend(MappingLever.name, mapping_file.path_of(settings), why),))
    with contextlib.suppress(TarazuError):
        agent_of(settings).follow(plan, "apply", "", of=lambda held: False)


def change_of(
    settings: config.Settings,
    how: str,
    rules: Sequence[Rule],
    why: str,
    asked_by: str,
    scores: tuple[Score, ...] = (),
) -> Change:
    """This mapping in force."""
    path = mapping_file.path_of(settings)
    wanted = {path: mapping_file.text_of(how, rules)}
    return Change(
        lever=MappingLever.name, target=path, wanted=wanted, why=why, asked_by=asked_by, scores=scores
    )
