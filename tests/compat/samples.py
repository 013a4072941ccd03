"""Messages of every kind, made from their types: as little as a kind needs, every field at another value than its
default, every alternative and literal; and any message as plain values that JSON holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

VARIANTS = 8
"""No literal has more values."""
_NUMBERS = (0, 3, 4711, 1, 40_000, 2, 65_535, 2**40)
_FLOATS = (0.0, 0.625, 1e9, 0.5, 86_400.0, 0.125, 3.0, 1e-3)
_TEXTS = ("", "a1", "työ/ü", "-", "x y", "0", "lustre", "'\"\n")


def samples(kind: type, skip: tuple[str, ...] = ()) -> list[Any]:
    """Instances of a struct; fields in `skip` stay at their defaults."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return [_instance(info, variant, skip) for variant in range(VARIANTS)]


def _instance(info: inspect.StructType | inspect.DataclassType, variant: int, skip: tuple[str, ...]) -> Any:
    values = {}
    for place, field in enumerate(info.fields):
        if field.name in skip or field.name == "protocol":
            continue
        if variant == 0 and not field.required:
            continue
        # Fields of one message differ, so that two that changed places are noticed.
        turn = variant if isinstance(field.type, inspect.LiteralType) else variant + place * (variant > 1)
        values[field.name] = _value(field.type, turn, bool(variant))
        if variant == 1 and not field.required and values[field.name] == field.default:
            values[field.name] = _value(field.type, turn + 1, True)
    return info.cls(**values)


def _value(info: inspect.Type, turn: int, full: bool) -> Any:
    """One value of a type; another turn gives another one, where there are several."""
    if isinstance(info, inspect.Metadata):
        return _value(info.type, turn, full)
    if isinstance(info, inspect.StructType | inspect.DataclassType):
        return _instance(info, turn % VARIANTS, ())
    if isinstance(info, inspect.UnionType):
        return _value(info.types[turn % len(info.types)], turn, full)
    if isinstance(info, inspect.LiteralType):
        return sorted(info.values)[turn % len(info.values)]
    if isinstance(info, inspect.EnumType):
        return list(info.cls)[turn % len(info.cls)]
    if isinstance(info, inspect.VarTupleType):
        return tuple(_value(info.item_type, turn + i, full) for i in range(1 + turn % 3 if full else 0))
    if isinstance(info, inspect.TupleType):
        return tuple(_value(each, turn + i, full) for i, each in enumerate(info.item_types))
    if isinstance(info, inspect.DictType):
        count = 1 + turn % 2 if full else 0
        return {
            _value(info.key_type, turn + i, True): _value(info.value_type, turn + i, full)
            for i in range(count)
        }
    if isinstance(info, inspect.IntType):
        low = info.ge if info.ge is not None else 0
        high = info.lt - 1 if info.lt is not None else info.le
        value = low + _NUMBERS[turn % len(_NUMBERS)]
        return value if high is None else min(value, high)
    if isinstance(info, inspect.StrType):
        return _TEXTS[turn % len(_TEXTS)]
    if isinstance(info, inspect.FloatType):
        return _FLOATS[turn % len(_FLOATS)]
    if isinstance(info, inspect.BoolType):
        return turn % 2 == 1
    if isinstance(info, inspect.BytesType):
        return bytes(range(turn % len(_NUMBERS)))
    if isinstance(info, inspect.AnyType):
        return ({}, 1, "text", [1, 2.5], None, {"a": {"b": [True]}})[turn % 6]
    if isinstance(info, inspect.NoneType):
        return None
    raise TypeError(f"no sample of {info}")


def plain(value: Any) -> Any:
    """As JSON holds it: structs by the names of their fields, all of them; bytes as {"$hex": …}."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, bytes | bytearray | memoryview | msgspec.Raw):
        return {"$hex": bytes(value).hex()}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def missing(expected: Any, found: Any, where: str = "") -> list[str]:
    """Where `found` (`plain`) differs from `expected`; further fields of it are no difference."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for name, value in expected.items()
            for line in (
                missing(value, found[name], f"{where}.{name}")
                if name in found
                else [f"{where}.{name} is gone"]
            )
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            line for i, pair in enumerate(zip(expected, found)) for line in missing(*pair, f"{where}[{i}]")
        ]
    same = expected == found and (isinstance(expected, bool) == isinstance(found, bool))
    return [] if same else [f"{where}: expected {expected!r}, found {found!r}"]
