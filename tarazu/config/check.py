"""What a setting is: its default, its line of help, and what its value must be; and what makes sections of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Check(NamedTuple):
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


def addresses(text: str) -> tuple[str, ...]:
    """Of one setting: separated by commas."""
    return tuple(address.strip() for address in text.split(","))


ADDRESSES = Check(
    f"{ADDRESS.expected}, or several with commas between",
    lambda v: all(map(ADDRESS.holds, addresses(v))),
)
ADDRESS_OR_NOTHING = Check(f"{ADDRESS.expected}, or nothing", lambda v: v == "" or ADDRESS.holds(v))

LISTENS = Check("host:port, a port (of loopback), or nothing", lambda v: v == "" or listening(v) is not None)


_STANDS_FOR_SOMETHING = r"\{[^{}]*\}|[{}]|\$|%[A-Za-z]"
"""Or would elsewhere: taken as it is, one directory would be everybody's."""
PATH = Check("a path without {…}, $ and %x", lambda v: not re.search(_STANDS_FOR_SOMETHING, v))
ABSOLUTE = Check("an absolute path without {…}, $ and %x", lambda v: v.startswith("/") and PATH.holds(v))
ABSOLUTE_OR_NOTHING = Check(f"{ABSOLUTE.expected}, or nothing", lambda v: v == "" or ABSOLUTE.holds(v))
OWN_PATH = Check(
    "a path in which {uid} stands for the user's number, %h for the node's name, and nothing else for anything",
    lambda v: all(part in ("{uid}", "%h") for part in re.findall(_STANDS_FOR_SOMETHING, v)),
)


def listening(address: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `port`, of loopback then; None for anything else."""
    match = re.fullmatch(r"(?:(?:\[([\da-fA-F:.]+)\]|([^\s:\[\]]+)):)?(\d{1,5})", address)
    if match is None or not 0 < int(match[3]) < 65536:
        return None
    return match[1] or match[2] or "127.0.0.1", int(match[3])


class Item:
    """One setting of a section: its default, or what makes it; its line of help, and what its value must be."""

    def __init__(
        self,
        default: Any = None,
        text: str = "",
        check: Check | None = None,
        size: bool = False,
        make: Callable[[], Any] | None = None,
    ) -> None:
        self.name = self.kind = ""
        """As the class of the section says them; the kind as it is written there."""
        self.default, self.make = default, make
        self.text, self.check, self.size = text, check, size


def setting(default: Any, text: str, check: Check | None = None, *, size: bool = False) -> Any:
    """One setting. `size=True`: a byte size, also written as `64M`."""
    if isinstance(default, (list, dict)):
        raise TypeError("settings are immutable: use a tuple")
    return Item(default, text, check, size)


def made_by(make: Callable[[], Any]) -> Any:
    """A part of the settings, with all its defaults."""
    return Item(make=make)


def items(section: type) -> dict[str, Item]:
    """All settings of a section by name."""
    found: dict[str, Item] = vars(section)["__items__"]
    return found


def section(*, frozen: bool) -> Callable[[type], type]:
    """The decorator of a class of settings: what it makes is as `dataclass(frozen=True)` makes it, in a tenth of the
    time and without `dataclasses`, which takes as long to import as half of Python's own start: `tarazu run` must start
    at once. Type checkers are told that it is `dataclass` itself.
    """
    assert frozen

    def decorate(cls: type) -> type:
        found: dict[str, Item] = {}
        for name, kind in cls.__annotations__.items():
            given = cls.__dict__[name]
            item = found[name] = given if isinstance(given, Item) else Item(given)
            item.name, item.kind = name, kind
            if item.make:
                delattr(cls, name)
            else:
                setattr(cls, name, item.default)
        shared = {
            method.__name__: method
            for method in (__init__, __setattr__, __delattr__, __eq__, __hash__, __repr__)
        }
        for name, of_all in {"__items__": found, "__dataclass_fields__": _Fields(), **shared}.items():
            setattr(cls, name, of_all)
        return cls

    return decorate


class _Fields:
    """What `dataclasses` looks for in a class, made when it does."""

    def __get__(self, instance: object, cls: type) -> Any:
        return _fields(cls)


@functools.cache
def _fields(cls: type) -> Any:
    import dataclasses

    fields: list[tuple[str, Any, Any]] = [
        (item.name, item.kind, dataclasses.field(default_factory=item.make) if item.make else item.default)
        for item in items(cls).values()
    ]
    made: Any = dataclasses.make_dataclass(cls.__name__, fields)
    return made.__dataclass_fields__


def __init__(self: Any, *given: Any, **named: Any) -> None:
    found = type(self).__items__
    named |= zip(found, given)
    for name, item in found.items():
        if name in named:
            self.__dict__[name] = named.pop(name)
        else:
            self.__dict__[name] = item.make() if item.make else item.default
    if named or len(given) > len(found):
        raise TypeError(f"{type(self).__name__} has no setting {', '.join(named) or given[len(found)]}")


def __setattr__(self: object, name: str, value: object) -> None:
    _refuse("assign to", name)


def __delattr__(self: object, name: str) -> None:
    _refuse("delete", name)


def _refuse(what: str, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {what} field {name!r}")


def __eq__(self: object, other: object) -> bool:
    return vars(self) == vars(other) if type(self) is type(other) else NotImplemented


def __hash__(self: object) -> int:
    return hash(tuple(vars(self).values()))


def __repr__(self: object) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
