"""The mapping of nodes to routers that mdsd follows: a file beside mdsd (`tarazu.parts.routers.mapping_file`).

A target is the file's path; its one part has that name, and the mapping's name and rules as its value. There is none:
no mapping.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tarazu.errors import StoreError, Unavailable
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.routers import mapping_file

NONE_OF_OURS = "no mapping: "


class MappingLever(Lever):
    name = "mapping"
    lasting: ClassVar[bool] = True
    seen_by: ClassVar[str] = "evenness"

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
        what = ("--follow",) if how == mapping_file.FOLLOW else ("--apply", "--mapping", how)
        return [shlex.join(("tarazu", "change", "bursts", "remap", *what))]
