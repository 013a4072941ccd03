"""What a setting is: its default, its line of help, and what its value must be; and what makes sections of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field
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


_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
PATH = Check("a path without { and }", lambda v: not _BRACES.search(v))
ABSOLUTE = Check("an absolute path without { and }", lambda v: v.startswith("/") and PATH.holds(v))
ABSOLUTE_OR_NOTHING = Check(f"{ABSOLUTE.expected}, or nothing", lambda v: v == "" or ABSOLUTE.holds(v))
OWN_PATH = Check(
    "a path in which {uid} stands for the user's number, %h for the node's name, and nothing else is in braces",
    lambda v: all(part == "{uid}" for part in _BRACES.findall(v)),
)


def listening(address: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `port`, of loopback then; None for anything else."""
    match = re.fullmatch(r"(?:(?:\[([\da-fA-F:.]+)\]|([^\s:\[\]]+)):)?(\d{1,5})", address)
    if match is None or not 0 < int(match[3]) < 65536:
        return None
    return match[1] or match[2] or "127.0.0.1", int(match[3])


def setting(default: Any, text: str, check: Check | None = None, *, size: bool = False) -> Any:
    """One setting. `size=True`: a byte size, also written as `64M`."""
    metadata = {"help": text, "check": check, "size": size}
    if isinstance(default, (list, dict)):
        raise TypeError("settings are immutable: use a tuple")
    return field(default=default, metadata=metadata)


def section(*, frozen: bool) -> Callable[[type], type]:
    """The decorator of a class of settings: does what `dataclass(frozen=True)` does, in a tenth of the time.

    `dataclass` compiles methods of its own for each class, 30 ms for all sections, and `tarazu run` must start at once;
    here all sections share theirs. Type checkers are told that it is `dataclass` itself.
    """
    assert frozen

    def decorate(cls: type) -> type:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass looks for its signature
        made: type = dataclass(init=False, repr=False, eq=False)(cls)
        for method in (__init__, __setattr__, __delattr__, __eq__, __hash__, __repr__):
            setattr(made, method.__name__, method)
        return made

    return decorate


def __init__(self: Any, *given: Any, **named: Any) -> None:
    fields = self.__dataclass_fields__
    named |= zip(fields, given)
    for name, item in fields.items():
        if name in named:
            self.__dict__[name] = named.pop(name)
        else:
            made: Any = item.default_factory
            self.__dict__[name] = item.default if made is MISSING else made()
    if named or len(given) > len(fields):
        raise TypeError(f"{type(self).__name__} has no setting {', '.join(named) or given[len(fields)]}")


def __setattr__(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def __eq__(self: object, other: object) -> bool:
    return vars(self) == vars(other) if type(self) is type(other) else NotImplemented


def __hash__(self: object) -> int:
    return hash(tuple(vars(self).values()))


def __repr__(self: object) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
