"""From valid messages to malformed ones: their structure changed, or their bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

DEEP = 2_000
"""Levels of nesting: Python's decoders give up at about half of it."""

_RAW = (
    b"\xc1",  # no msgpack at all
    b"\xdd\xff\xff\xff\xff",  # an array of 2^32-1 items that do not come
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdc\x0b\xb8" + b"\xc0" * 3_000,  # one whose items do come
    b"\x91" * DEEP + b"\xc0",
    b"\x81\xa1x" * DEEP + b"\xc0",
    b"\xc7\x04\x7fABCD",  # an extension
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",  # NaN
    b"\xa4\xff\xfe\xfd\xfc",  # text that is no UTF-8
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**16,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    2**64 - 1,
    -(2**63),
    float("inf"),
    float("-inf"),
    -0.0,
    5e-324,
    1.8e308,
    "",
    "\x00",
    "../../../etc/passwd",
    "x" * 129,
    "y" * 5_000,
    "%s%n'\"; DROP TABLE plans; --\n",
    b"\x00\xff",
    [],
    {},
    [[]] * 300,
    {str(n): n for n in range(300)},
    *map(msgspec.Raw, _RAW),
)


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values in it; of a long list those to the first few."""
    found = [path]
    if isinstance(tree, dict):
        for key in tree:
            found += _places(tree[key], (*path, key))
    elif isinstance(tree, list):
        for index in range(min(len(tree), 4)):
            found += _places(tree[index], (*path, index))
    return found


def _changed(tree: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(tree)
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = _changed(copy[path[0]], path[1:], change)
    return copy


def structure(data: bytes, rng: random.Random) -> bytes:
    """The message with one to three values replaced, removed, repeated or renamed."""
    tree = msgspec.msgpack.decode(data)
    for _ in range(rng.randint(1, 3)):
        places = _places(tree)
        tree = _changed(tree, rng.choice(places), lambda value: _hostile(value, rng))
    return msgspec.msgpack.encode(tree)


def _hostile(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.5:
        copy, key = dict(value), rng.choice(list(value))
        kept = copy.pop(key)
        if rng.random() < 0.5:
            copy[f"{key}?"] = kept
        return copy
    if isinstance(value, list) and value and rng.random() < 0.5:
        return value[1:] if rng.random() < 0.5 else value * rng.choice((2, 50))
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.3:
        return max(-(2**63), min(value + rng.choice((-1, 1, 2**32)), 2**64 - 1))
    return rng.choice(_VALUES)


def some_bytes(data: bytes, rng: random.Random) -> bytes:
    """The message with bits flipped, cut, repeated, or something put into it."""
    kind, changed = rng.randrange(6), bytearray(data)
    at = rng.randrange(len(changed) + 1)
    if kind == 0:
        for _ in range(rng.choice((1, 1, 2, 8))):
            if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del changed[at:]
    elif kind == 2:
        changed[at:at] = rng.choice(_RAW)
    elif kind == 3:
        changed += data[: rng.randrange(len(data) + 1)]
    elif kind == 4:
        del changed[at : at + rng.randrange(1, 9)]
    else:
        return rng.randbytes(rng.choice((0, 1, 2, 7, 64, 1_500)))
    return bytes(changed)


def pool(valid: Sequence[bytes], number: int, seed: int, unchanged: float = 0.02) -> list[bytes]:
    """So many messages, the same for the same seed; a share of them as they were, in any order."""
    rng = random.Random(seed)
    found = []
    for _ in range(number):
        data, kind = rng.choice(valid), rng.random()
        if kind < unchanged:
            found.append(data)
        elif kind < 0.6:
            found.append(structure(data, rng))
        else:
            found.append(some_bytes(data, rng))
    return found
