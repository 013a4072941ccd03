"""The words of `lctl pool_*`: which calls make a pool what is wanted, and in which order. Calls nothing."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence

from tarazu.parts.pool.members import EXISTS, IN, NONE, OUT, POOL

MOST_OSTS = 128
"""Of one call: each is a record of the configuration log, and all of them must be there within the call's time."""
MOST_CHARACTERS = 79
"""Of one word that names OSTs: 2.16 and later refuse longer ones."""


def calls(target: str, wanted: Mapping[str, str], found: Collection[int] | None) -> list[list[str]]:
    """Arguments of lctl, call after call; `target`: `scratch.good`; `wanted`: parts; `found`: who is in it now, None
    where there is no such pool.

    First come those that are to be in it: a pool that is empty for a moment limits nothing, nor does one that is gone.
    """
    inside = found or ()
    add = [int(name) for name, value in wanted.items() if value == IN and int(name) not in inside]
    remove = [int(name) for name, value in wanted.items() if value == OUT and int(name) in inside]
    made = [["pool_new", target]] if found is None and wanted.get(POOL) == EXISTS else []
    gone = [["pool_destroy", target]] if found is not None and wanted.get(POOL) == NONE else []
    return [*made, *words(target, "pool_add", add), *words(target, "pool_remove", remove), *gone]


def words(target: str, what: str, osts: Sequence[int]) -> list[list[str]]:
    """`pool_add scratch.good scratch-OST[3,a-c]`: the OSTs of a call are one word, for up to Lustre 2.15 lctl waits
    after each word until a client knows of it.
    """
    fs_name = target.partition(".")[0]
    if len(osts) == 1:
        return [[what, target, f"{fs_name}-OST{osts[0]:04x}"]]
    made: list[list[str]] = []
    parts: list[list[int]] = []
    word, count = "", 0
    for index in sorted(osts):
        if parts and index == parts[-1][-1] + 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
        longer = f"{fs_name}-OST[{','.join('-'.join(f'{i:x}' for i in part) for part in parts)}]"
        if count and (len(longer) > MOST_CHARACTERS or count == MOST_OSTS):
            made.append([what, target, word])
            parts, count = [[index]], 0
            longer = f"{fs_name}-OST[{index:x}]"
        word, count = longer, count + 1
    return [*made, [what, target, word]] if osts else made


def shown(calls: Sequence[Sequence[str]]) -> list[str]:
    """The same as commands for people."""
    return [shlex.join(["lctl", *call]) for call in calls]
