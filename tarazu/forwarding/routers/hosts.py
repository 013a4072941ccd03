"""Host names: folded lists as batch systems print them, `n[001-004,7],login1`, and which NIDs a host has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, product, zip_longest
from math import prod
from pathlib import Path

from tarazu.errors import BadInput
from tarazu.forwarding import reading
from tarazu.forwarding.routers import nids
from tarazu.forwarding.routers.nids import Nid

MAX_HOSTS = 100_000
"""Of one text that is unfolded."""
MAX_NIDS = 4 * MAX_HOSTS
"""Of one line."""
MAX_FILE_BYTES = 16 << 20

_WORD = re.compile(r"(?:[^\s,\[\]]|\[[\d,-]+\])+")
_BRACKETS = re.compile(r"\[([\d,-]+)\]")
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,9})(\D*)", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def unfold(text: str) -> tuple[str, ...]:
    """Each host once, in order; numbers keep their leading zeros. Raises BadInput."""
    if re.sub(r"[\s,]+", "", _WORD.sub("", text)):
        raise BadInput(text[:80], "hosts such as n[001-004,7],login1")
    hosts: dict[str, None] = {}
    for word in _WORD.findall(text):
        places = [_numbers(inside, text) for inside in _BRACKETS.findall(word)]
        if len(hosts) + prod(map(len, places)) > MAX_HOSTS:
            raise BadInput(text[:80], f"at most {MAX_HOSTS} hosts")
        parts = _BRACKETS.split(word)[::2]
        for numbers in product(*places):
            hosts["".join(a + b for a, b in zip_longest(parts, numbers, fillvalue=""))] = None
    return tuple(hosts)


def fold(hosts: Iterable[str]) -> str:
    """As batch systems read it: `n[001-004,7],login1`, in the order in which the first of each comes."""
    numbers: dict[tuple[str, int, str], set[int]] = {}
    for host in hosts:
        matched = _LAST_NUMBER.fullmatch(host)
        if matched is None:
            numbers[host, -1, ""] = set()
            continue
        before, number, behind = matched.groups()
        # Numbers of one width, or without leading zeros: 9 and 10 are one range, 09 and 9 are not.
        width = len(number) if number.startswith("0") else 0
        numbers.setdefault((before, width, behind), set()).add(int(number))
    found = []
    for (before, width, behind), each in numbers.items():
        ranges = ",".join(_ranges(sorted(each), width))
        found.append(f"{before}[{ranges}]{behind}" if len(each) > 1 else f"{before}{ranges}{behind}")
    return ",".join(found)


def _ranges(numbers: list[int], width: int) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        first, *rest = (number for _, number in run)
        last = f"-{rest[-1]:0{width}}" if rest else ""
        yield f"{first:0{width}}{last}"


def _numbers(inside: str, text: str) -> list[str]:
    """`001-004,7`, each with its leading zeros."""
    found: list[str] = []
    for item in inside.split(","):
        matched = _RANGE.fullmatch(item)
        first, last = (matched[1], matched[2] or matched[1]) if matched else ("1", "0")
        if not 0 <= int(last) - int(first) < MAX_HOSTS - len(found):
            raise BadInput(text[:80], f"ranges such as [001-004,7], of at most {MAX_HOSTS} numbers")
        found += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return found


def read(path: Path) -> dict[str, tuple[Nid, ...]]:
    """Host → its NIDs, of a file of lines `HOST NID…`; `#` begins a comment.

    A line may be of several hosts, `n[001-100] 10.77.0.[31-130]@tcp1`: as many NIDs in each pattern, in order. Raises
    BadInput naming the line, or the file that cannot be read.
    """
    text = reading.text(path, MAX_FILE_BYTES)
    found: dict[str, tuple[Nid, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(maxsplit=1)
        if not words:
            continue
        where = f"{path}:{number}"
        try:
            hosts, patterns = unfold(words[0]), nids.few(words[1] if len(words) > 1 else "", MAX_NIDS)
        except BadInput as error:
            raise BadInput(where, "a line such as n[001-100] 10.77.0.[31-130]@tcp1", str(error)) from None
        if not patterns:
            raise BadInput(where, "a host and its NIDs", line[:40])
        for pattern in patterns:
            if len(hosts) > 1 and pattern.size != len(hosts):
                raise BadInput(where, f"{len(hosts)} NIDs, one for each host", f"{pattern.size} in {pattern}")
            of_each = [(nid,) for nid in pattern.nids()] if len(hosts) > 1 else [tuple(pattern.nids())]
            for host, its in zip(hosts, of_each, strict=True):
                found[host] = (*found.get(host, ()), *its)
    return found


def of(host: str, known: Mapping[str, tuple[Nid, ...]]) -> tuple[Nid, ...]:
    """The NIDs of a host, by its whole name or its first part; none where it is not known."""
    return known.get(host) or known.get(host.partition(".")[0], ())
