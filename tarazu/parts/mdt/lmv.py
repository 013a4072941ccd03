"""The default of a directory's new subdirectories: on which MDTs they are made (`lfs setdirstripe -D`).

As words of `lfs setdirstripe`, and as `trusted.dmv` has it (`struct lmv_user_md`, since 2.8). Bounded: 4 KiB.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.errors import LayoutError
from tarazu.lustre import LMV_INHERIT_RR_UNLIMITED, LMV_USER_MAGIC, LMV_USER_MD

ANY_MDT = -1
"""As the index: Lustre chooses (`LMV_OFFSET_DEFAULT`)."""
UNLIMITED = -1
UNKNOWN = "a default of another form"
LARGEST = 250
"""Levels of inheritance (`LMV_INHERIT_MAX`)."""
LARGEST_INDEX = LARGEST_COUNT = 2000
"""`LMV_MAX_STRIPE_COUNT`."""
HASHES = ("none", "all_char", "fnv_1a_64", "crush", "crush2")
_LONGEST = 4096
_LEAST = {"-i": ANY_MDT, "-c": 0, "-X": UNLIMITED, "--max-inherit-rr": UNLIMITED}
_MOST = {"-i": LARGEST_INDEX, "-c": LARGEST_COUNT, "-X": LARGEST, "--max-inherit-rr": LARGEST}
_INHERIT_UNLIMITED, _INHERIT_NONE = 0, 255


class DefaultLmv(NamedTuple):
    mdt: int = ANY_MDT
    """Index of the MDT of new subdirectories."""
    stripe_count: int = 1
    """MDTs that each is spread over; 0 is as 1."""
    hash: str = "none"
    max_inherit: int = UNLIMITED
    """Levels below that it holds for; 0: none."""
    max_inherit_rr: int = 0
    """Levels on which they go round robin over the MDTs while space is even."""

    def __str__(self) -> str:
        """Options of `lfs setdirstripe -D`."""
        words = [f"-c {self.stripe_count} -i {self.mdt}"]
        words += [f"-H {self.hash}"] * (self.hash != "none" and self.stripe_count not in (0, 1))
        words += [f"-X {self.max_inherit}"] * (
            self.max_inherit != UNLIMITED or self.stripe_count not in (0, 1)
        )
        words += [f"--max-inherit-rr {self.max_inherit_rr}"] * (self.max_inherit_rr != 0)
        return " ".join(words)

    @property
    def below(self) -> DefaultLmv | None:
        """What a new subdirectory gets a copy of; None: nothing."""
        if self.max_inherit in (0, 1):
            return None
        return self._replace(max_inherit=_next(self.max_inherit), max_inherit_rr=_next(self.max_inherit_rr))

    def at_depth(self, depth: int) -> DefaultLmv | None:
        """As the root's default holds for a directory so far below it that has none of its own (since 2.15)."""
        if self.max_inherit != UNLIMITED and self.max_inherit <= depth:
            return None
        inherits, inherits_rr = (
            n if n == UNLIMITED else max(0, n - depth) for n in (self.max_inherit, self.max_inherit_rr)
        )
        return self._replace(max_inherit=inherits, max_inherit_rr=inherits_rr)


def _next(levels: int) -> int:
    return levels if levels == UNLIMITED else max(0, levels - 1)


def of_blob(blob: bytes) -> DefaultLmv | None:
    """None where `lfs setdirstripe` could not make the same. Empty is not asked. Raises LayoutError."""
    if not LMV_USER_MD.size <= len(blob) <= _LONGEST:
        raise LayoutError("trusted.dmv", f"{LMV_USER_MD.size} to {_LONGEST} bytes", f"{len(blob)} bytes")
    magic, count, mdt, hash_, kind, inherit, inherit_rr, *rest, pool = LMV_USER_MD.unpack_from(blob)
    if magic != LMV_USER_MAGIC or len(blob) != LMV_USER_MD.size or kind or any(rest) or pool.strip(b"\0"):
        return None
    if (
        hash_ >= len(HASHES)
        or LARGEST < inherit < _INHERIT_NONE
        or LARGEST < inherit_rr < LMV_INHERIT_RR_UNLIMITED
    ):
        return None
    index = ANY_MDT if mdt == 2**32 - 1 else mdt
    if index > LARGEST_INDEX or not 0 <= count <= LARGEST_COUNT or (index != ANY_MDT and inherit_rr):
        return None
    inherits = {_INHERIT_UNLIMITED: UNLIMITED, _INHERIT_NONE: 0}.get(inherit, inherit)
    return DefaultLmv(
        index,
        count,
        HASHES[hash_],
        inherits,
        UNLIMITED if inherit_rr == LMV_INHERIT_RR_UNLIMITED else inherit_rr,
    )


def to_blob(default: DefaultLmv) -> bytes:
    """As an MDS keeps it."""
    inherits = {UNLIMITED: _INHERIT_UNLIMITED, 0: _INHERIT_NONE}.get(default.max_inherit, default.max_inherit)
    inherits_rr = LMV_INHERIT_RR_UNLIMITED if default.max_inherit_rr == UNLIMITED else default.max_inherit_rr
    mdt = default.mdt % 2**32
    hash_ = HASHES.index(default.hash)
    return LMV_USER_MD.pack(
        LMV_USER_MAGIC, default.stripe_count, mdt, hash_, 0, inherits, inherits_rr, 0, 0, 0, b""
    )


def words_of(blob: bytes) -> str:
    """Options of `lfs setdirstripe -D`; empty for none, UNKNOWN where they cannot say it."""
    try:
        return str(of_blob(blob) or UNKNOWN) if blob else ""
    except LayoutError:
        return UNKNOWN


def is_same(words: str, other: str) -> bool:
    """Whether they make the same default; of one stripe the hash says nothing, and servers set one (before 2.14)."""
    if not words or not other:
        return words == other
    try:
        return str(parsed(words)) == str(parsed(other))
    except LayoutError:
        return words == other


def parsed(words: str) -> DefaultLmv:
    """Raises LayoutError for what is not among the options that `DefaultLmv` has."""
    expected = "-i MDT [-c N] [-H HASH] [-X N] [--max-inherit-rr N]"
    found = words.split()
    options = dict(zip(found[::2], found[1::2], strict=False))
    numbers = {name: value for name, value in options.items() if name in _LEAST}
    whole = all(re.fullmatch(r"-?[0-9]{1,4}", value) for value in numbers.values())
    if (
        2 * len(options) != len(found)
        or "-i" not in options
        or {*options} - {*_LEAST, "-H"}
        or not whole
        or any(not _LEAST[name] <= int(value) <= _MOST[name] for name, value in numbers.items())
        or options.get("-H", HASHES[0]) not in HASHES
        or (int(options.get("--max-inherit-rr", 0)) and int(options["-i"]) != ANY_MDT)
    ):
        raise LayoutError("lfs setdirstripe -D", expected, words)
    count = int(options.get("-c", 1))
    inherits = int(options.get("-X", UNLIMITED if count in (0, 1) else 3))
    inherits_rr = int(options.get("--max-inherit-rr", 0))
    return DefaultLmv(int(options["-i"]), count, options.get("-H", HASHES[0]), inherits, inherits_rr)
