"""Reads settings from files and the environment, and reports every mistake; tells what a daemon may reread."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from tarazu.config import files
from tarazu.config.check import Item, items
from tarazu.config.files import ConfigFile
from tarazu.config.sections import READ_EACH_STEP, RELOADED, SECTIONS, Settings
from tarazu.errors import ConfigError
from tarazu.names import near
from tarazu.units import parse_bytes

T = TypeVar("T")
BEYOND = 2**63
"""No file, count or time is as large; nan and inf are not below it either."""
LONGEST_S = 1e9
"""30 years; what waits may be asked to wait."""


class Examined(NamedTuple):
    settings: Settings
    """With the defaults of what is wrong."""
    problems: list[ConfigError]
    """Each mistake, in the order of the files, then of the environment."""
    origins: dict[str, str]
    """`mdsd.requests` → where its value comes from; none for a default."""

    def where(self, *names: str) -> str:
        """Of the first of these settings that somebody has set."""
        for name in names:
            if name in self.origins:
                return self.origins[name]
        return ", ".join(names)


def load(path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from `path` (else $TARAZU_CONFIG, else /etc/tarazu/tarazu.toml), `conf.d/*.toml` beside it and, before
    all of these, the environment.

    Raises ConfigError naming the file and the line or key, what was expected and what was found.
    """
    examined = examine(path, environ)
    if examined.problems:
        raise examined.problems[0]
    return examined.settings


def examine(path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Examined:
    """As `load`, but continues after each mistake."""
    environ = os.environ if environ is None else environ
    reader = _SettingsReader()
    try:
        paths = files.chosen(path, environ)
    except ConfigError as error:
        paths = []
        reader.problems.append(error)
    for each in paths:
        try:
            reader.file(files.read(each))
        except ConfigError as error:
            reader.problems.append(error)
    reader.environment(environ)
    examined = Examined(reader.settings(), reader.problems, reader.origins)
    return examined


class _SettingsReader:
    """Values by section, of one place after the other; a later one counts."""

    def __init__(self) -> None:
        self.problems: list[ConfigError] = []
        self.origins: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        self._items = {section: items(cls) for section, cls in SECTIONS.items()}

    def settings(self) -> Settings:
        return Settings(**{section: cls(**self._values[section]) for section, cls in SECTIONS.items()})

    def file(self, file: ConfigFile) -> None:
        for section, table in file.tables.items():
            if section not in SECTIONS:
                where = file.place(rf"\[\s*{re.escape(section)}\b|{re.escape(section)}\s*=")
                expected = _one_of("a section", section, SECTIONS)
                self.problems.append(ConfigError(where, expected, section))
            elif not isinstance(table, dict):
                self.problems.append(
                    ConfigError(file.place(rf"{section}\s*="), f"a table [{section}]", table)
                )
            else:
                self._table(file, section, table)

    def _table(self, file: ConfigFile, section: str, table: Mapping[str, Any]) -> None:
        for name, value in table.items():
            where = f"{file.place_of(section, name)}: [{section}] {name}"
            if name not in self._items[section]:
                self.problems.append(ConfigError(where, _expected(section, name, self._items), name))
            else:
                self._take(section, name, value, where)

    def environment(self, environ: Mapping[str, str]) -> None:
        given = {name for name in environ if name.startswith("TARAZU_")}
        for section, known in self._items.items() if given else ():
            for name in known:
                variable = f"TARAZU_{section.upper()}_{name.upper()}"
                if variable in given:
                    value = _from_text(environ[variable], KINDS[known[name].kind])
                    self._take(section, name, value, f"${variable}")

    def _take(self, section: str, name: str, value: Any, where: str) -> None:
        try:
            taken = _convert(value, self._items[section][name], where)
        except ConfigError as error:
            self.problems.append(error)
        else:
            self._values[section][name] = taken
            self.origins[f"{section}.{name}"] = where


KINDS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": tuple[str, ...],
}
"""Of settings, as their sections write them."""


def _expected(section: str, name: str, items: Mapping[str, Mapping[str, object]]) -> str:
    elsewhere = [f"{other}.{name}" for other, known in items.items() if name in known]
    if elsewhere:
        return f"a setting of [{section}] (there is {', '.join(elsewhere)})"
    return _one_of(f"a setting of [{section}]", name, items[section])


def _one_of(what: str, name: str, known: Mapping[str, object]) -> str:
    """With what was likely meant, or all that there is."""
    if meant := near(name, known):
        return f"{what} (did you mean {' or '.join(meant)}?)"
    return f"{what} among {', '.join(known)}"


def _from_text(text: str, kind: Any) -> Any:
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


def _convert(value: Any, item: Item, where: str) -> Any:
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


def override(settings: Settings, section: str, **values: Any) -> Settings:
    """`settings` with those values of one section that are not None: options of a command line."""
    chosen = {name: value for name, value in values.items() if value is not None}
    changed = _with(getattr(settings, section), chosen)
    return _with(settings, {section: changed})


def _with(before: T, values: Mapping[str, Any]) -> T:
    return type(before)(**{**vars(before), **values})


def read_at(section: str, name: str) -> str:
    """When a setting is read: `start` of a daemon, also at `SIGHUP`, or by `tarazu run` for each `step`."""
    if name in RELOADED.get(section, ()):
        return "SIGHUP"
    return "step" if name in READ_EACH_STEP.get(section, ()) else "start"


def changed(before: Settings, after: Settings) -> list[str]:
    """Settings that differ, as `mdsd.requests`."""
    return [
        f"{section}.{name}"
        for section, cls in SECTIONS.items()
        for name in items(cls)
        if getattr(getattr(before, section), name) != getattr(getattr(after, section), name)
    ]


def reloaded(before: Settings, after: Settings) -> tuple[Settings, list[str]]:
    """`before` with what a running daemon may take over of `after`; what else differs, as `mdsd.requests`."""
    taken: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    left = []
    for each in changed(before, after):
        section, _, name = each.partition(".")
        if read_at(section, name) == "start":
            left.append(each)
        else:
            taken[section][name] = getattr(getattr(after, section), name)
    sections = {section: _with(getattr(before, section), taken[section]) for section in SECTIONS}
    return Settings(**sections), left
