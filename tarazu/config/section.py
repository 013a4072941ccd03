"""What makes a class of settings of a class with annotations: as `dataclass(frozen=True)` does, in a tenth of the time.

`dataclass` writes each class's methods anew and compiles them, 30 ms for all sections; `tarazu run` is to start at
once. Here all share theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass
from typing import Any


def section(*, frozen: bool) -> Callable[[type], type]:
    """The decorator. Type checkers are told that it is `dataclass` itself, whose options it has: `frozen` it is."""
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
