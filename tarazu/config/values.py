"""One value of a setting, out of a file or the environment: converted and checked; what is said of an unknown name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tarazu.config import files
from tarazu.config.check import Item
from tarazu.errors import ConfigError
from tarazu.names import near
from tarazu.units import parse_bytes

BEYOND = 2**63
"""No file, count or time is as large; nan and inf are not below it either."""
LONGEST_S = 1e9
"""30 years; what waits may be asked to wait."""

KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": tuple[str, ...],
}
"""Of settings, as their sections write them."""


def meant(section: str, name: str, items: Mapping[str, Mapping[str, object]]) -> str:
    elsewhere = [f"{other}.{name}" for other, known in items.items() if name in known]
    if elsewhere:
        return f"a setting of [{section}] (there is {', '.join(elsewhere)})"
    return one_of(f"a setting of [{section}]", name, items[section])


def one_of(what: str, name: str, known: Mapping[str, object]) -> str:
    """With what was likely meant, or all that there is."""
    if likely := near(name, known):
        return f"{what} (did you mean {' or '.join(likely)}?)"
    return f"{what} among {', '.join(known)}"


def from_text(text: str, kind: Any) -> Any:
    if kind is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            text.lower(), text
        )
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return text
    if kind == tuple[str, ...]:
        if text.startswith("["):  # as in a file: entries may hold colons then
            return files.value(text)
        return [part for part in text.split(":") if part]
    return text


def convert(value: Any, item: Item, where: str) -> Any:
    found = value
    kind = KINDS[item.kind]
    if item.size and isinstance(value, str):
        try:
            value = parse_bytes(value)
        except ValueError:
            raise ConfigError(where, "a size such as 64M", found) from None
    if isinstance(value, (int, float)) and not abs(value) < BEYOND:
        shown = found if isinstance(value, float) else f"one of {value.bit_length()} bits"
        raise ConfigError(where, "a number that means something", shown)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if kind == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise ConfigError(where, "a list of strings", found)
        value = tuple(value)
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        raise ConfigError(where, words[kind], found)
    if any(
        "\0" in text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str)
    ):
        raise ConfigError(where, "no NUL in it", found)
    if kind is float and item.name.endswith("_s") and value > LONGEST_S:
        raise ConfigError(where, f"at most {LONGEST_S:.0f} s", found)
    check = item.check
    if check and not check.holds(value):
        raise ConfigError(where, check.expected, found)
    return value
