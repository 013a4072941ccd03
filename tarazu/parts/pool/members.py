"""A pool as parts of a change: each OST by its index, `in` or `out`, and the pool itself, `exists` or `none`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.held import Held

POOL, EXISTS, NONE = "pool", "exists", "none"
IN, OUT = "in", "out"


def parts_of(found: Collection[int] | None, asked: Collection[str] = ()) -> tuple[Part, ...]:
    """`found`: who is in it, None where there is no such pool; `asked`: parts that are listed even if they are out."""
    inside = {str(index) for index in found or ()}
    osts = sorted({*inside, *asked} - {POOL}, key=int)
    pool = Part(POOL, NONE if found is None else EXISTS)
    return (pool, *(Part(name, IN if name in inside else OUT) for name in osts))


def osts_in(values: Mapping[str, str], value: str = IN) -> set[int]:
    return {int(name) for name, each in values.items() if each == value and name != POOL}


def values_of(parts: Sequence[Part]) -> dict[str, str]:
    return {part.name: part.value for part in parts}


def put_in(held: Held, parts: Sequence[Part]) -> list[int]:
    """OSTs that somebody else has put into the pool and that are in it; `parts`: as it is now."""
    # Into a pool of ours one that our change does not name came with somebody else.
    ours = held.change.wanted if values_of(held.before).get(POOL) == NONE else values_of(parts)
    inside = (part.name for part in parts if part.value == IN)
    return sorted(int(name) for name in inside if name in held.theirs or name not in ours)


def without_us(held: Held, parts: Sequence[Part], *, for_good: bool) -> dict[str, str]:
    """Part → value, of those that are ours, so that nobody's files are worse off than before us.

    A pool that was not there goes. Where somebody else has put OSTs into it, it is his and stays: with those alone all
    files of its directories would go there, so it has all others too that he did not take out. While it only rests
    (not `for_good`) it has all of them, too: that is Lustre's own choice. One that was there and would be empty but for
    ours keeps ours: without members it would limit nothing any more.
    """
    before, now = values_of(held.before), values_of(parts)
    his = put_in(held, parts)
    if before.get(POOL) == EXISTS:
        stays = his or osts_in({name: before[name] for name in before if name not in held.theirs})
        return before if stays or not osts_in(before) else {}
    if now.get(POOL) == EXISTS and (his or not for_good):
        return {name: IN for name in held.change.wanted if name != POOL}
    return {name: NONE if name == POOL else OUT for name in before}
