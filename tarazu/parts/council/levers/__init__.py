"""The levers of parameters that learn: the values of each, how Lustre shows and takes them, how it is read and set.

listed  what they have in common
nrs     the policy that orders an OSS's requests, with its quantum
client  a client's parameters: RPCs in flight, their size, read-ahead
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tarazu.errors import BadInput
from tarazu.parts.council.levers import client, nrs

MAX_VALUES = 64
"""Of one lever: each has to be tried before it is known."""
_PARSE: dict[str, Callable[[str], str]] = {
    "nrs": lambda value: str(nrs.parse(value)),
    **{name: kind.parse for name, kind in client.KINDS.items()},
}
NAMES = tuple(_PARSE)
USUAL = {
    "nrs": nrs.VALUES,
    **{n: kind.values for n, kind in client.KINDS.items()},
}
"""Lever → the values it has where a site lists none."""


def values_of(text: str) -> tuple[str, tuple[str, ...]]:
    """(lever, all that may be set of it) of one of `part.council.levers`: its name, `nrs`, or with the values that may
    be set instead of the usual ones, `nrs=fifo | crrn 16`. Raises BadInput.
    """
    name, given, listed = text.partition("=")
    name = name.strip()
    if name not in NAMES:
        raise BadInput("part.council.levers", f"one of {', '.join(NAMES)}", name)
    if not given:
        return name, USUAL[name]
    values = tuple(dict.fromkeys(_PARSE[name](each.strip()) for each in listed.split("|")))
    if not 2 <= len(values) <= MAX_VALUES:
        raise BadInput(f"part.council.levers: {name}", f"2 to {MAX_VALUES} different values", listed.strip())
    return name, values


def levers_of(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`part.council.levers`: lever → its values. Raises BadInput."""
    made: dict[str, tuple[str, ...]] = {}
    for name, values in map(values_of, texts):
        if name in made:
            raise BadInput("part.council.levers", "each lever once", f"{name} twice")
        made[name] = values
    if client.PAIR in made and (twice := {client.PAGES, client.RPCS} & set(made)):
        raise BadInput(
            "part.council.levers", f"{client.PAIR} or its parameters by themselves", ", ".join(twice)
        )
    return made
