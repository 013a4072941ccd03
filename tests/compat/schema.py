"""What a version's messages look like, as data: written down by that version, made into a decoder again by a later one.

A description is plain JSON: `structs` (name → tag, whether it is an array, fields in order) and `kinds` (names of
those that travel). `decoder` gives a msgspec decoder that takes and refuses what that version's own took and refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import inspect

from tests.compat.samples import plain

_PLAIN = {
    inspect.BoolType: bool,
    inspect.FloatType: float,
    inspect.NoneType: None,
    inspect.AnyType: Any,
    inspect.BytesType: bytes,
    inspect.RawType: msgspec.Raw,
    inspect.IntType: int,
    inspect.StrType: str,
}
_LIMITS = ("gt", "ge", "lt", "le", "min_length", "max_length")


def describe(kinds: Iterable[type]) -> dict[str, Any]:
    """The description of these structs and of all that they hold."""
    structs: dict[str, Any] = {}
    infos = [inspect.type_info(kind) for kind in kinds]
    return {"kinds": [_type(info, structs)["struct"] for info in infos], "structs": structs}


def _type(info: inspect.Type, structs: dict[str, Any]) -> dict[str, Any]:
    if isinstance(info, inspect.Metadata):
        info = info.type
    limits = {n: getattr(info, n) for n in _LIMITS if getattr(info, n, None) is not None}
    if isinstance(info, inspect.StructType | inspect.DataclassType):
        name = info.cls.__name__
        if name not in structs:
            structs[name] = {}  # Seen: what holds itself ends here.
            structs[name].update(
                tag=getattr(info, "tag", None),
                array=getattr(info, "array_like", False),
                fields=[_field(field, structs) for field in info.fields],
            )
        return {"struct": name}
    if isinstance(info, inspect.UnionType):
        return {"any_of": [_type(each, structs) for each in info.types]}
    if isinstance(info, inspect.EnumType):
        return {"plain": "StrType"}  # with a member for words that it does not know
    if isinstance(info, inspect.LiteralType):
        return {"literal": sorted(info.values)}
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        lengths = {n: limits[n] for n in ("min_length", "max_length") if limits.get(n)}
        return {"list_of": _type(info.item_type, structs), **lengths}
    if isinstance(info, inspect.TupleType):
        return {"items": [_type(each, structs) for each in info.item_types]}
    if isinstance(info, inspect.DictType):
        lengths = {n: limits[n] for n in ("min_length", "max_length") if limits.get(n)}
        return {"keys": _type(info.key_type, structs), "values": _type(info.value_type, structs), **lengths}
    if type(info) in _PLAIN:
        return {"plain": type(info).__name__, **limits}
    raise TypeError(f"no description of {info}")


def _field(field: inspect.Field, structs: dict[str, Any]) -> dict[str, Any]:
    found = {"name": field.encode_name, "type": _type(field.type, structs)}
    if not field.required:
        factory = field.default_factory
        found["default"] = plain(field.default if factory is msgspec.NODEFAULT else factory())
    return found


def decoder(description: dict[str, Any]) -> msgspec.msgpack.Decoder[Any]:
    """That version's decoder of a message."""
    made: dict[str, Any] = {}
    kinds = [_struct(name, description["structs"], made) for name in description["kinds"]]
    return msgspec.msgpack.Decoder(Union[tuple(kinds)])  # noqa: UP007


def _struct(name: str, structs: dict[str, Any], made: dict[str, Any]) -> Any:
    if name not in made:
        what = structs[name]
        fields = [
            (f["name"], kind, msgspec.UNSET) if "default" in f else (f["name"], kind)
            for f in what["fields"]
            for kind in [_made(f["type"], structs, made)]
        ]
        made[name] = msgspec.defstruct(name, fields, tag=what["tag"], array_like=what["array"])
    return made[name]


def _made(info: dict[str, Any], structs: dict[str, Any], made: dict[str, Any]) -> Any:
    limits = {n: info[n] for n in _LIMITS if n in info}
    if "struct" in info:
        return _struct(info["struct"], structs, made)
    if "any_of" in info:
        return Union[tuple(_made(each, structs, made) for each in info["any_of"])]  # noqa: UP007
    if "literal" in info:
        return Literal[tuple(info["literal"])]
    if "items" in info:
        return tuple[tuple(_made(each, structs, made) for each in info["items"])]  # type: ignore[misc]
    found: Any
    if "list_of" in info:
        found = tuple[_made(info["list_of"], structs, made), ...]
    elif "keys" in info:
        found = dict[_made(info["keys"], structs, made), _made(info["values"], structs, made)]  # type: ignore[misc]
    else:
        found = next(kind for name, kind in _PLAIN.items() if name.__name__ == info["plain"])
    return Annotated[found, msgspec.Meta(**limits)] if limits else found
