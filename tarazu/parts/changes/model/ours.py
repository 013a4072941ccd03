"""Whose each part of a target is now: ours, somebody else's, nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tarazu.parts.changes.model.change import ALL, Change, Part, value_of
from tarazu.parts.changes.model.goals import HARD
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.outcome import Gave


class Sorted(NamedTuple):
    ours: tuple[Part, ...]
    theirs: tuple[Part, ...]
    """As somebody else has made them since."""


def sort(lever: Lever, held: Held, parts: Sequence[Part]) -> Sorted:
    """`parts`: as they are now. Those that were not there before us, and those that are others' already, are neither.

    A part is ours while it is as one of the steps has it, or as it may be between them.
    """
    before = {(part.name, part.of): part.value for part in held.before}
    ours: list[Part] = []
    theirs: list[Part] = []
    for part in parts:
        old = before.get((part.name, part.of))
        if old is None or part.name in held.theirs:
            continue
        values = [old if (value := value_of(step, part.name)) is None else value for step in held.steps]
        is_ours = any(lever.same(part.value, value) for value in values)
        is_ours = is_ours or (len(values) > 1 and lever.between(part.value, values))
        (ours if is_ours else theirs).append(part)
    return Sorted(tuple(ours), tuple(theirs))


def wanted_of(wanted: Mapping[str, str], parts: Sequence[Part]) -> dict[str, str]:
    """Part → value, of parts that are there."""
    values = ((part.name, value_of(wanted, part.name)) for part in parts)
    return {name: value for name, value in values if value is not None}


def promised(change: Change, seen_by: str = "") -> Gave | None:
    """By the first soft goal that it betters: what must not be is counted before, and not measured after. `seen_by`:
    of its lever, where it promises nothing else.
    """
    for score in change.scores:
        if score.after < score.before and score.measure not in HARD:
            return Gave(score.measure, score.before, score.after)
    return Gave(seen_by) if seen_by else None


def with_new_parts(lever: Lever, held: Held, parts: Sequence[Part]) -> Held:
    """With parts that have come since; without those that are gone. Raises Unavailable for new ones that may not be
    changed.
    """
    if not parts:
        return held  # it may only be away, as an OST that fails over
    noted = {(part.name, part.of) for part in held.before}
    here = {(part.name, part.of) for part in parts}
    if here == noted:
        return held
    new = tuple(part for part in parts if (part.name, part.of) not in noted)
    if new:
        lever.may_change(held.change.target, new)
    kept = tuple(part for part in held.before if (part.name, part.of) in here)
    return msgspec.structs.replace(held, before=(*kept, *new))


def names_of(change: Change, held: Held | None) -> list[str]:
    names = [name for name in change.wanted if name != ALL]
    if held:
        names += [part.name for part in held.before]
        names += [name for step in held.steps for name in step if name != ALL]
    return list(dict.fromkeys(names))


def goal_back(
    lever: Lever, held: Held, parts: Sequence[Part], ours: Sequence[Part], *, for_good: bool
) -> dict[str, str]:
    """Of those that are ours: not of another device that has come under the name of one."""
    back = lever.back(held, parts, for_good=for_good)
    return {
        part.name: back[part.name]
        for part in ours
        if part.name in back and not lever.is_so(part.value, back[part.name])
    }


def being_restored(held: Held, found: Mapping[str, str] | None = None) -> Held:
    """What was wanted, what was there, and what came of it: all ours."""
    steps = (*(step for step in held.steps if step), *([dict(found)] if found else ()), {})
    return msgspec.structs.replace(held, steps=steps)


def without_words(change: Change) -> Change:
    return msgspec.structs.replace(change, why="", scores=())
