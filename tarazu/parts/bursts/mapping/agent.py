"""The lever of the mapping of nodes to routers that mdsd follows, and its agent, on mdsd's node: `tarazu change bursts
remap`.

It is a file beside mdsd (`tarazu.parts.routers.mapping_file`). A target is the file's path; its one part has that name,
and the mapping's name and rules as its value. There is none: no mapping.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tarazu import config
from tarazu.errors import StoreError, Unavailable
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.store import Store
from tarazu.parts.routers import mapping_file
from tarazu.parts.routers.udsp import Rule

NONE_OF_OURS = "no mapping: "


class MappingLever(Lever):
    name = "mapping"
    lasting: ClassVar[bool] = True

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        try:
            in_force = mapping_file.read(Path(target))
        except StoreError as error:  # somebody's hand, or a later version's
            return (Part(target, f"{NONE_OF_OURS}{error}"),)
        return (Part(target, mapping_file.text_of(in_force.how, in_force.rules) if in_force else ""),)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        for value in wanted.values():
            if value:
                mapping_file.parsed(value)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            if part.value.startswith(NONE_OF_OURS):
                raise Unavailable(f"{part.value}: this file could not be restored; remove it")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        if value := wanted[target]:
            mapping_file.write(Path(target), *mapping_file.parsed(value))
        else:
            mapping_file.remove(Path(target))

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        if not (value := wanted.get(target)):
            return [shlex.join(("rm", target))]
        how = mapping_file.parsed(value)[0]
        return [shlex.join(("tarazu", "change", "bursts", "remap", "--apply", "--mapping", how))]


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


def change_of(settings: config.Settings, how: str, rules: Sequence[Rule], why: str, asked_by: str) -> Change:
    """This mapping in force."""
    path = mapping_file.path_of(settings)
    wanted = {path: mapping_file.text_of(how, rules)}
    return Change(lever=MappingLever.name, target=path, wanted=wanted, why=why, asked_by=asked_by)
