"""Whose each part of a target is now: ours, somebody else's, nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarazu.changes.change import Part, value_of
from tarazu.changes.held import Held
from tarazu.changes.lever import Lever


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
