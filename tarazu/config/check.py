"""What a setting is: its default, its line of help, and what its value must be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Check:
    """What a value must be, in words, and the test for it."""

    expected: str
    holds: Callable[[Any], bool]


def one_of(*names: str) -> Check:
    return Check("one of " + ", ".join(names), lambda v: v in names)


POSITIVE = Check("a number above 0", lambda v: v > 0)
NOT_NEGATIVE = Check("0 or more", lambda v: v >= 0)
SHARE = Check("a share between 0 and 1", lambda v: 0 <= v <= 1)
WEIGHT = Check("a number from 0 to 1000000", lambda v: 0 <= v <= 1e6)
ADDRESS = Check(
    "an address such as tcp://mds1:5770", lambda v: re.fullmatch(r"(tcp|ipc|inproc)://\S+", v) is not None
)
ADDRESS_OR_NOTHING = Check(f"{ADDRESS.expected}, or nothing", lambda v: v == "" or ADDRESS.holds(v))

LISTENS = Check("host:port, a port (of loopback), or nothing", lambda v: v == "" or listening(v) is not None)


def listening(address: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `port`, of loopback then; None for anything else."""
    found = re.fullmatch(r"(?:(?:\[([\da-fA-F:.]+)\]|([^\s:\[\]]+)):)?(\d{1,5})", address)
    if found is None or not 0 < int(found[3]) < 65536:
        return None
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def setting(default: Any, text: str, check: Check | None = None, *, size: bool = False) -> Any:
    """One setting. `size=True`: a byte size, also written as `64M`."""
    metadata = {"help": text, "check": check, "size": size}
    if isinstance(default, (list, dict)):
        raise TypeError("settings are immutable: use a tuple")
    return field(default=default, metadata=metadata)
