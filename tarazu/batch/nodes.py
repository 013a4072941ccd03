"""Nodes as Slurm prints them: partitions, with what is idle in them, and the switches above them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tarazu.batch import node_set
from tarazu.errors import BadInput

SINFO = "%P|%T|%c,%z,%m,%d,%G,%w|%N"
"""A line for all nodes that are alike."""
IDLE = "idle"
"""Nothing else will do: `planned` nodes wait for a job before us, `idle*` does not answer, `idle~` is switched off."""

_WORD = re.compile(r"(\w+)=(\S+)")


class Partition(NamedTuple):
    """Nodes among which a job may be."""

    nodes: frozenset[str]
    idle: frozenset[str]
    kinds: int
    """How many kinds of nodes it has, by processors, memory, disk, generic resources and weight."""


def partitions(text: str) -> tuple[dict[str, Partition], str]:
    """By name, and the default one's name. Raises BadInput."""
    nodes: dict[str, set[str]] = {}
    idle: dict[str, set[str]] = {}
    kinds: dict[str, set[str]] = {}
    default = ""
    for number, line in enumerate(text.splitlines(), 1):
        where = f"sinfo:{number}"
        words = line.split("|")
        if len(words) != 4:
            raise BadInput(where, "4 fields", line[:80])
        shown, state, kind, folded = words
        name = shown.removesuffix("*")
        if name != shown:
            default = name
        hosts = _hosts(folded, where)
        nodes.setdefault(name, set()).update(hosts)
        kinds.setdefault(name, set()).add(kind)
        if state == IDLE:
            idle.setdefault(name, set()).update(hosts)
    return {
        name: Partition(frozenset(all_of), frozenset(idle.get(name, ())), len(kinds[name]))
        for name, all_of in nodes.items()
    }, default


def _hosts(folded: str, where: str) -> tuple[str, ...]:
    try:
        return node_set.unfold(folded)
    except BadInput as error:
        raise BadInput(where, "node names", str(error)) from None


class Switch(NamedTuple):
    """A line of a topology."""

    name: str
    nodes: str
    """Folded; empty: none."""
    leaf: bool


def lines(text: str) -> list[tuple[int, str]]:
    """(number, words) of lines that say something; `#` begins a comment."""
    every = enumerate(text.splitlines(), 1)
    return [(number, words) for number, line in every if (words := line.partition("#")[0].strip())]


def topology(lines: Sequence[tuple[int, str]], where: str) -> list[Switch] | None:
    """Of topology.conf, or what `scontrol show topology` prints; None for something else. Raises BadInput."""
    if not any(words.lower().startswith("switchname=") for _, words in lines):
        return None
    switches = []
    for number, words in lines:
        said = {name.lower(): value for name, value in _WORD.findall(words)}
        if "switchname" not in said:
            raise BadInput(f"{where}:{number}", "a line such as SwitchName=leaf1 Nodes=n[1-16]", words[:60])
        leaf = "nodes" in said and "switches" not in said and said.get("level", "0") == "0"
        switches.append(Switch(said["switchname"], said.get("nodes", ""), leaf))
    return switches
