"""The levers that Lustre has: how each is set, read back and restored.

base       what all do the same way; the seam behind which `lctl` is called
files      where their parameters lie, below any root
nrs        the policy that orders an OSS's requests, with its quantum
tbf        one rule that limits, where an administrator has TBF in force
client     a client's parameters: RPCs in flight, their size, read-ahead
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tarazu.errors import BadInput
from tarazu.tune.lever import Lever
from tarazu.tune.levers import client
from tarazu.tune.levers.base import Setter
from tarazu.tune.levers.nrs import Nrs
from tarazu.tune.levers.tbf import TbfRule

NAMES = ("nrs", "nrs_tbf_rule", *client.KINDS)
MAX_VALUES = 64
"""Of one lever: each has to be tried before it is known."""


def lever(text: str, lctl: Setter, root: str | Path = "/") -> Lever:
    """One of `tune.levers`: its name, `nrs`, or with the values that may be set instead of those it has by itself,
    `nrs=fifo | crrn 16`. Raises BadInput.
    """
    name, given, listed = text.partition("=")
    name = name.strip()
    if name not in NAMES:
        raise BadInput("tune.levers", f"one of {', '.join(NAMES)}", name)
    kinds: dict[str, Callable[[Setter, str | Path], Lever]] = {"nrs": Nrs, "nrs_tbf_rule": TbfRule}
    made = kinds[name](lctl, root) if name in kinds else client.Tunable(client.KINDS[name], lctl, root)
    assert isinstance(made, Nrs | TbfRule | client.Tunable)
    if given:
        values = dict.fromkeys(made.canonical(each.strip()) for each in listed.split("|"))
        if not 2 <= len(values) <= MAX_VALUES:
            raise BadInput(f"tune.levers: {name}", f"2 to {MAX_VALUES} different values", listed.strip())
        made.values = tuple(values)
    return made


def levers_of(texts: Sequence[str], lctl: Setter, root: str | Path = "/") -> dict[str, Lever]:
    """`tune.levers`, by their names. Raises BadInput."""
    made: dict[str, Lever] = {}
    for text in texts:
        each = lever(text, lctl, root)
        if each.name in made:
            raise BadInput("tune.levers", "each lever once", f"{each.name} twice")
        made[each.name] = each
    return made


def known(lctl: Setter, root: str | Path = "/") -> dict[str, Lever]:
    """All levers there are: what is noted is restored whatever `tune.levers` says now."""
    return {name: lever(name, lctl, root) for name in NAMES}
