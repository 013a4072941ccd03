"""LNet NIDs, and the patterns in which `lnetctl udsp` takes many of them at once: `10.77.0.[31-40]@tcp1`.

A pattern is ip2nets' syntax: each place of an address is a number, `*`, or a list of ranges in brackets, `[1-9/2,20]`
(from 1 to 9 in steps of 2, and 20). Networks with IPv4 addresses and with numbers are known; IPv6 addresses are not,
because Lustre's rules take none (`cfs_parse_nid_parts`, up to 2.17).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import NamedTuple

from tarazu.errors import BadInput

IPV4_NETS = ("tcp", "o2ib", "gip", "efa")
NUMBER_NETS = ("gni", "kfi", "ptlf", "bxi3f")
MAX_NUMBER = 2**32 - 1
"""Of an address that is one number."""
MAX_NUMBERS = 65_536
"""In one place of a pattern."""
MAX_NIDS = 1_000_000
"""Of one text that is unfolded."""
MAX_CHARACTERS = 100
"""Of one pattern that `fold` makes: `lnetctl udsp show` has 128 for each (LNET_MAX_STR_LEN)."""

_NET = re.compile(rf"({'|'.join(IPV4_NETS + NUMBER_NETS)})(\d{{0,5}})")
_ITEM = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?:/(\d{1,10}))?)?", re.ASCII)
_PATTERN = re.compile(r"(?:[^\s,\[]|\[[^\]]*\]?)+")
"""Up to a comma or a space that is not within brackets."""

Numbers = frozenset[int]


class Nid(NamedTuple):
    """One address: four numbers of IPv4, or one."""

    address: tuple[int, ...]
    net: str
    """`tcp`, `o2ib1`; network 0 has no number."""

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.address))}@{self.net}"


class NidPattern(NamedTuple):
    """All NIDs of one network whose address has one of `places[i]` in place i. Prints as lnetctl takes it."""

    places: tuple[Numbers, ...]
    net: str

    @property
    def size(self) -> int:
        return prod(map(len, self.places))

    def has(self, nid: Nid) -> bool:
        """Whether it is one of them."""
        return (
            nid.net == self.net
            and len(nid.address) == len(self.places)
            and all(number in place for number, place in zip(nid.address, self.places, strict=True))
        )

    def overlaps(self, other: NidPattern) -> bool:
        """Whether a NID is one of both."""
        return (
            self.net == other.net
            and len(self.places) == len(other.places)
            and not any(a.isdisjoint(b) for a, b in zip(self.places, other.places, strict=True))
        )

    def nids(self) -> Iterator[Nid]:
        for address in product(*map(sorted, self.places)):
            yield Nid(address, self.net)

    def __str__(self) -> str:
        return f"{'.'.join(map(_expression, self.places))}@{self.net}"


def net(text: str) -> str:
    """The network's name in its shortest form, `tcp` for `tcp0`. Raises BadInput."""
    matched = _NET.fullmatch(text)
    if not matched or int(matched[2] or 0) > 65_535:
        raise BadInput(
            text[:80], f"a network among {', '.join(IPV4_NETS + NUMBER_NETS)}, with a number or none"
        )
    return f"{matched[1]}{int(matched[2])}" if matched[2] and int(matched[2]) else matched[1]


def parse(text: str) -> Nid:
    """`10.77.0.31@tcp1`. Raises BadInput for anything else, an IPv6 address too."""
    nid_pattern = pattern(text)
    if nid_pattern.size != 1:
        raise BadInput(text[:80], "one NID such as 10.77.0.31@tcp1")
    return next(nid_pattern.nids())


def pattern(text: str, most_numbers: int = MAX_NUMBERS) -> NidPattern:
    """`10.77.0.[31-40]@tcp1`, of at most so many numbers in one place, as written. Raises BadInput."""
    address, at, name = text.rpartition("@")
    if not at:
        raise BadInput(text[:80], "NIDs such as 10.77.0.[31-40]@tcp1")
    short = net(name)
    if short.startswith(IPV4_NETS):
        parts, most = address.split("."), 255
        if len(parts) != 4:
            raise BadInput(text[:80], "an IPv4 address such as 10.77.0.[31-40]@tcp1")
    else:
        parts, most = [address], MAX_NUMBER
    return NidPattern(tuple(_numbers(part, most, text, most_numbers) for part in parts), short)


def patterns(text: str) -> tuple[NidPattern, ...]:
    """`10.77.0.[31-40]@tcp1, 10.77.0.50@tcp1`. Raises BadInput."""
    return tuple(map(pattern, _PATTERN.findall(text)))


def few(text: str, most: int) -> tuple[NidPattern, ...]:
    """`patterns(text)`, of at most so many NIDs together. Raises BadInput, for more of them before they are made."""
    nid_patterns, left = [], most
    for matched in _PATTERN.finditer(text):
        if left <= 0:
            raise BadInput(text[:80], f"at most {most} NIDs")
        nid_patterns.append(pattern(matched[0], min(MAX_NUMBERS, left)))
        left -= nid_patterns[-1].size
    if left < 0:
        raise BadInput(text[:80], f"at most {most} NIDs")
    return tuple(nid_patterns)


def unfold(text: str, most: int = MAX_NIDS) -> tuple[Nid, ...]:
    """Every NID of `few(text, most)`, in order, each once. Raises BadInput."""
    return tuple(sorted({nid for each in few(text, most) for nid in each.nids()}, key=_order))


def fold(nids: Iterable[Nid]) -> tuple[NidPattern, ...]:
    """Few patterns that together have exactly these NIDs, each once, none printing longer than MAX_CHARACTERS.

    Addresses that differ in one place only become one pattern, the last place first, as racks are numbered.
    """
    nid_patterns = {NidPattern(tuple(frozenset((n,)) for n in nid.address), nid.net) for nid in nids}
    longest = max((len(each.places) for each in nid_patterns), default=0)
    for place in reversed(range(longest)):
        alike: dict[NidPattern, set[int]] = {}
        for each in nid_patterns:
            if place < len(each.places):
                alike.setdefault(_with(each, place, frozenset()), set()).update(each.places[place])
            else:
                alike.setdefault(each, set())
        nid_patterns = {
            _with(each, place, frozenset(numbers)) if numbers else each for each, numbers in alike.items()
        }
    short = [part for each in nid_patterns for part in _short(each)]
    return tuple(sorted(short, key=lambda each: _order(next(each.nids()))))


def text(found: Iterable[NidPattern]) -> str:
    """What `patterns` reads."""
    return ", ".join(map(str, found))


def _with(each: NidPattern, place: int, numbers: Numbers) -> NidPattern:
    return each._replace(places=(*each.places[:place], numbers, *each.places[place + 1 :]))


def _order(nid: Nid) -> tuple[str, tuple[int, ...]]:
    return nid.net, nid.address


def _short(each: NidPattern) -> Iterator[NidPattern]:
    if len(str(each)) <= MAX_CHARACTERS:
        yield each
        return
    place = max(range(len(each.places)), key=lambda i: len(_expression(each.places[i])))
    numbers = sorted(each.places[place])
    half = len(numbers) // 2
    for part in (numbers[:half], numbers[half:]):
        yield from _short(_with(each, place, frozenset(part)))


def _numbers(part: str, most: int, text: str, most_numbers: int) -> Numbers:
    if part == "*":
        part = f"[0-{most}]"
    inside = part[1:-1] if part[:1] == "[" and part[-1:] == "]" else None
    numbers: set[int] = set()
    left = most_numbers
    for item in [part] if inside is None else inside.split(","):
        matched = _ITEM.fullmatch(item)
        if not matched or (inside is None and matched[2]):
            raise BadInput(text[:80], "numbers, or ranges in brackets such as [1-9,20-30/2]")
        first, last, step = int(matched[1]), int(matched[2] or matched[1]), int(matched[3] or 1)
        if not (first <= last <= most and step):
            raise BadInput(text[:80], f"ranges of numbers up to {most}, the smaller one first")
        # What is named again counts again: it takes as long.
        left -= (last - first) // step + 1
        if left < 0:
            raise BadInput(text[:80], f"at most {most_numbers} numbers in one place")
        numbers.update(range(first, last + 1, step))
    return frozenset(numbers)


def _expression(numbers: Numbers) -> str:
    """As few items as come of it simply; at most one of them, the last, is no range.

    Lustre prints a list that begins with a single number without its brackets (`cfs_expr2str`, up to 2.17), and a
    rule that is not shown as it was set would not be found again.
    """
    items, single = _runs(sorted(numbers))
    steps, left = _steps(single)
    items += steps
    if not items and len(left) == 1:
        return str(left[0])
    return f"[{','.join([*items, *map(str, left)])}]"


def _runs(numbers: list[int]) -> tuple[list[str], list[int]]:
    """(`3-7` for neighbours, the numbers without one)."""
    items, single, begin = [], [], 0
    for end in range(1, len(numbers) + 1):
        if end < len(numbers) and numbers[end] == numbers[end - 1] + 1:
            continue
        if end - begin == 1:
            single.append(numbers[begin])
        else:
            items.append(f"{numbers[begin]}-{numbers[end - 1]}")
        begin = end
    return items, single


def _steps(numbers: list[int]) -> tuple[list[str], list[int]]:
    """(`1-9/2` for numbers at equal distances, two at least; the one that may be left)."""
    items, begin = [], 0
    while len(numbers) - begin > 1:
        step = numbers[begin + 1] - numbers[begin]
        end = begin + 1
        while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
            end += 1
        items.append(f"{numbers[begin]}-{numbers[end]}/{step}")
        begin = end + 1
    return items, numbers[begin:]
