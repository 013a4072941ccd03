"""What `lnetctl udsp show` prints, and the arguments that change rules.

A user defined selection policy (UDSP) with `dst` and `rte` makes a server prefer the routers `rte` for what it sends
to the peers `dst`. Rules are numbered; deleting one renumbers those after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tarazu import nids
from tarazu.errors import BadInput
from tarazu.nids import Nid, NidPattern

SHOW = ("udsp", "show")
MOST_RULES = 64
"""That one OSS sets; Lustre looks through all of them for each peer."""
MAX_BYTES = 4 << 20
"""Of one answer: 10,000 rules are 1 MB."""

_KEY = re.compile(r"\s*(-)?\s*([A-Za-z_][\w \-/]*?):(?:\s+(.*?))?\s*")


class Rule(NamedTuple):
    """One rule as tarazu sets it. Equal rules are one rule to Lustre, however they are written."""

    dst: NidPattern
    rte: NidPattern

    def __str__(self) -> str:
        return f"--dst {self.dst} --rte {self.rte}"


class Udsp(NamedTuple):
    """One rule as it is shown; empty or None what it has not."""

    idx: int
    src: str = ""
    dst: str = ""
    rte: str = ""
    priority: int | None = None

    @property
    def rule(self) -> Rule | None:
        """None for one that tarazu cannot have set."""
        if self.src or not self.dst or not self.rte or self.priority is not None:
            return None
        try:
            return Rule(nids.pattern(self.dst), nids.pattern(self.rte))
        except BadInput:
            return None


class Route(NamedTuple):
    """One way to a network."""

    net: str
    gateway: Nid
    up: bool
    priority: int = 0


def rule(dst: str, rte: str) -> Rule:
    """Raises BadInput for what is no pattern of NIDs, or would not be shown as it is set."""
    expected = f"NIDs folded into at most {nids.MAX_CHARACTERS} characters"
    for text in (dst, rte):
        if len(text) > nids.MAX_CHARACTERS:
            raise BadInput(text[:80], expected)
    made = Rule(nids.pattern(dst), nids.pattern(rte))
    for each in made:
        if len(str(each)) > nids.MAX_CHARACTERS:
            raise BadInput(str(each)[:80], expected)
    return made


def parsed(text: str) -> Rule:
    """A rule by its own text, `--dst … --rte …`. Raises BadInput."""
    match = re.fullmatch(r"--dst (\S+) --rte (\S+)", text)
    if not match:
        raise BadInput(text[:80], "a rule: --dst NIDS --rte NIDS")
    return rule(match[1], match[2])


def pattern_of(wanted: Collection[Nid], routers: Iterable[Nid]) -> NidPattern:
    """One pattern that of `routers` has those `wanted`; where there is none, as many of them as come of it simply.

    It may have other addresses, which are no router's.
    """
    address = zip(*(nid.address for nid in wanted), strict=True)
    net = next(iter(wanted)).net
    pattern = NidPattern(tuple(frozenset(numbers) for numbers in address), net)
    if len(str(pattern)) <= nids.MAX_CHARACTERS and all(r in wanted for r in routers if pattern.has(r)):
        return pattern
    return max(nids.fold(wanted), key=lambda each: each.size)


def add(new: Rule) -> tuple[str, ...]:
    """Arguments of lnetctl."""
    return "udsp", "add", "--dst", str(new.dst), "--rte", str(new.rte)


def delete(idx: int) -> tuple[str, ...]:
    """Arguments of lnetctl. The numbers above `idx` are one less afterwards."""
    return "udsp", "del", "--idx", str(idx)


def read_rules(text: str) -> tuple[Udsp, ...]:
    """`lnetctl udsp show`; nothing at all where there are no rules. Raises BadInput naming the line."""
    rules = []
    for item, line in _items(text, "udsp"):
        idx, priority = _number(item, "idx", line), item.get("priority")
        if idx is None:
            raise BadInput(f"lnetctl udsp show, line {line}", "idx: and a number")
        shown = _number(item, "priority", line) if priority is not None else None
        rules.append(Udsp(idx, item.get("src", ""), item.get("dst", ""), item.get("rte", ""), shown))
    return tuple(rules)


def why_failed(text: str) -> str:
    """What lnetctl says of an error, `cannot del udsp: No such file or directory`; the first line of anything else."""
    match = re.search(r"^\s*descr:\s*(?:!\s*)?\"?(.*?)\"?\s*$", text, re.MULTILINE)
    lines = text.strip().splitlines()
    return match[1] if match else (lines[0].strip() if lines else "")


def _items(text: str, head: str) -> list[tuple[dict[str, str], int]]:
    """(key → value, first line's number) of each item below `head:`. What is nested in an item counts as its own."""
    items: list[tuple[dict[str, str], int]] = []
    begun = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() in ("", "---", "..."):
            continue
        where = f"lnetctl {head} show, line {number}"
        match = _KEY.fullmatch(line)
        if not match:
            raise BadInput(where, "name: value", line[:80])
        if not line[0].isspace() and not match[1]:
            if match[2] != head or match[3] or begun:
                raise BadInput(where, f"{head}: once", line[:80])
            begun = True
            continue
        if not begun:
            raise BadInput(where, f"{head}:", line[:80])
        if match[1]:
            items.append(({}, number))
        if not items:
            raise BadInput(where, "an item that begins with -", line[:80])
        if match[3]:
            value = match[3]
            quoted = value[0] == value[-1] == '"' and len(value) > 1
            items[-1][0].setdefault(match[2], value[1:-1] if quoted else value)
    return items


def _number(item: dict[str, str], key: str, line: int) -> int | None:
    text = item.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"-?\d{1,10}", text, re.ASCII):
        raise BadInput(f"lnetctl, line {line}: {key}", "a whole number", text[:40])
    return int(text)
