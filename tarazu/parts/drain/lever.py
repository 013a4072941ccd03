"""Lever `drain`: one parameter that keeps new files off one OST (`choosing`), its target by its full name.

A note only names a parameter: nothing else is ever set, and nothing is restored that it cannot have been.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes import files
from tarazu.parts.changes.lctl import Lctl, commands_of
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.drain.choosing import PARAMETERS, DrainParameter


class DrainLever(Lever):
    name = "drain"
    seen_by = "time"
    by_hand = True

    def __init__(self, lctl: Lctl, root: str | Path) -> None:
        self.lctl, self.root = lctl, root

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        _kind(target)
        file = files.find(self.root, target)
        return (Part(target, file.text.strip()[:80], file.of),) if file else ()

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        if wanted != (expected := {target: str(_kind(target).drains)}):
            raise BadInput(f"drain {target}", f"{expected}", dict(wanted))

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        try:
            _check_before(target, parts)
        except BadInput as error:
            raise Unavailable(f"{error}: left alone") from None

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        self.lctl.set_all(list(wanted.items()))

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(wanted.items())

    def back(self, held: Held, parts: Sequence[Part], *, for_good: bool) -> Mapping[str, str]:
        if [part.value for part in held.before] == [str(_kind(held.change.target).drains)]:
            return {}  # somebody had drained it before us
        _check_before(held.change.target, held.before)
        if not parts:
            # Its target runs on another server now, and may come back: as it was drained, by our own doing.
            raise Unavailable(f"{held.change.target}: not on this node at the moment")
        return super().back(held, parts, for_good=for_good)


def _kind(target: str) -> DrainParameter:
    """Raises BadInput."""
    for kind in PARAMETERS.values():
        device, name = kind.parameter.split(".*.")
        if re.fullmatch(rf"{device}\.[\w-]+-OST[0-9a-fA-F]{{4,8}}[\w-]*\.{name}", target):
            return kind
    raise BadInput("drain", f"one of {', '.join(k.parameter for k in PARAMETERS.values())}", target)


def _check_before(target: str, parts: Sequence[Part]) -> None:
    """Raises BadInput for what it cannot have been: that is never set."""
    allowed = _kind(target).before
    if [part.name for part in parts] != [target] or not all(
        part.value.isascii()
        and part.value.isdecimal()
        and len(part.value) < 10
        and int(part.value) in allowed
        for part in parts
    ):
        span = f"{allowed[0]} to {allowed[-1]}" if len(allowed) > 1 else str(allowed[0])
        raise BadInput(f"{target} before it is drained", span, {part.name: part.value for part in parts})
