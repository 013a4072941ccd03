"""Lists of hosts as batch systems fold them, `n[001-004,7],login1`.

Sites' files give hosts an order (of NIDs, of nodes in a machine), so it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product, zip_longest
from math import prod

from tarazu.errors import BadInput

MAX_HOSTS = 100_000
"""Of one text that is unfolded."""

_WORD = r"(?:[^\s,\[\]]|\[[\d,-]+\])+"
_BRACKETS = r"\[([\d,-]+)\]"
_LAST_NUMBER = r"(?a)(.*?)(\d{1,9})(\D*)"
_RANGE = r"(?a)(\d{1,9})(?:-(\d{1,9}))?"


def unfold(text: str) -> tuple[str, ...]:
    """Each host once, in order; numbers keep their leading zeros. Raises BadInput, before it makes too many."""
    if re.sub(r"[\s,]+", "", re.sub(_WORD, "", text)):
        raise BadInput(text[:80], "hosts such as n[001-004,7],login1")
    hosts: dict[str, None] = {}
    for word in re.findall(_WORD, text):
        places = [_numbers(inside, text) for inside in re.findall(_BRACKETS, word)]
        if len(hosts) + prod(map(len, places)) > MAX_HOSTS:
            raise BadInput(text[:80], f"at most {MAX_HOSTS} hosts")
        parts = re.split(_BRACKETS, word)[::2]
        for numbers in product(*places):
            hosts["".join(a + b for a, b in zip_longest(parts, numbers, fillvalue=""))] = None
    return tuple(hosts)


def is_same(nodes: str, others: str) -> bool:
    """Whether they name the same nodes, however they are folded."""
    return nodes == others or (names_in(nodes) == names_in(others) != frozenset())


def names_in(folded: str) -> frozenset[str]:
    """None of what cannot be read."""
    try:
        return frozenset(unfold(folded))
    except BadInput:
        return frozenset()


def fold(hosts: Iterable[str]) -> str:
    """As Slurm does it: `n[001-004,7],login1`, in the order in which the first of each comes."""
    numbers: dict[tuple[str, str | None], set[str]] = {}
    for host in hosts:
        matched = re.fullmatch(_LAST_NUMBER, host)
        before, number, behind = matched.groups() if matched else (host, "", None)
        numbers.setdefault((before, behind), set()).add(number)
    words = []
    for (before, behind), each in numbers.items():
        folded = ",".join(_ranges(sorted(each, key=lambda number: (int(number or 0), len(number)))))
        words.append(f"{before}[{folded}]{behind}" if len(each) > 1 else f"{before}{folded}{behind or ''}")
    return ",".join(words)


def _ranges(numbers: list[str]) -> Iterator[str]:
    """009, 010 and 9, 10 follow one another, 9 and 010 do not."""
    begin = 0
    for end in range(1, len(numbers) + 1):
        before = numbers[end - 1]
        if end == len(numbers) or numbers[end] != f"{int(before or 0) + 1:0{len(before)}}":
            yield numbers[begin] if end - begin == 1 else f"{numbers[begin]}-{before}"
            begin = end


def _numbers(inside: str, text: str) -> list[str]:
    """`001-004,7`, each with its leading zeros."""
    numbers: list[str] = []
    for item in inside.split(","):
        matched = re.fullmatch(_RANGE, item)
        first, last = (matched[1], matched[2] or matched[1]) if matched else ("1", "0")
        if not 0 <= int(last) - int(first) < MAX_HOSTS - len(numbers):
            raise BadInput(text[:80], f"ranges such as [001-004,7], of at most {MAX_HOSTS} numbers")
        numbers += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return numbers
