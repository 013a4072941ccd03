"""Reads settings from files and the environment, and reports every mistake; tells what a daemon may reread."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tarazu.config import files
from tarazu.config.check import items
from tarazu.config.files import ConfigFile
from tarazu.config.parts import PART, Given, PartTables
from tarazu.config.sections import READ_EACH_STEP, RELOADED, SECTIONS, Settings
from tarazu.config.values import KINDS, convert, from_text, meant, one_of
from tarazu.errors import ConfigError

T = TypeVar("T")


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
        self._parts: dict[str, dict[str, Given]] = {}
        self._part_environment: dict[str, str] = {}
        self._items = {section: items(cls) for section, cls in SECTIONS.items()}

    def settings(self) -> Settings:
        parts = PartTables(self._parts, self._part_environment)
        return Settings(part=parts, **{s: cls(**self._values[s]) for s, cls in SECTIONS.items()})

    def file(self, file: ConfigFile) -> None:
        for section, table in file.tables.items():
            if section == PART:
                self._take_parts(file, table)
            elif section not in SECTIONS:
                where = file.place(rf"\[\s*{re.escape(section)}\b|{re.escape(section)}\s*=")
                expected = one_of("a section", section, SECTIONS)
                self.problems.append(ConfigError(where, expected, section))
            elif not isinstance(table, dict):
                self.problems.append(
                    ConfigError(file.place(rf"{section}\s*="), f"a table [{section}]", table)
                )
            else:
                self._table(file, section, table)

    def _take_parts(self, file: ConfigFile, tables: object) -> None:
        """What they hold is the parts' matter (`PartTables.of`)."""
        of_parts = tables if isinstance(tables, dict) else {"": tables}
        for name, table in of_parts.items():
            if not isinstance(table, dict):
                self.problems.append(
                    ConfigError(file.place(rf"\[?\s*{PART}\b"), f"a table [{PART}.NAME]", table)
                )
                continue
            for setting, value in table.items():
                where = f"{file.place_of(f'{PART}.{name}', setting)}: [{PART}.{name}] {setting}"
                self._parts.setdefault(name, {})[setting] = Given(value, where)

    def _table(self, file: ConfigFile, section: str, table: Mapping[str, Any]) -> None:
        for name, value in table.items():
            where = f"{file.place_of(section, name)}: [{section}] {name}"
            if name not in self._items[section]:
                self.problems.append(ConfigError(where, meant(section, name, self._items), name))
            else:
                self._take(section, name, value, where)

    def environment(self, environ: Mapping[str, str]) -> None:
        given = {name for name in environ if name.startswith("TARAZU_")}
        self._part_environment = {n: environ[n] for n in given if n.startswith("TARAZU_PART_")}
        for section, known in self._items.items() if given else ():
            for name in known:
                variable = f"TARAZU_{section.upper()}_{name.upper()}"
                if variable in given:
                    value = from_text(environ[variable], KINDS[known[name].kind])
                    self._take(section, name, value, f"${variable}")

    def _take(self, section: str, name: str, value: Any, where: str) -> None:
        try:
            taken = convert(value, self._items[section][name], where)
        except ConfigError as error:
            self.problems.append(error)
        else:
            self._values[section][name] = taken
            self.origins[f"{section}.{name}"] = where


def override(settings: Settings, section: str, **values: Any) -> Settings:
    """`settings` with those values of one section, also of a part's (`part.NAME`), that are not None: options of a
    command line.
    """
    chosen = {name: value for name, value in values.items() if value is not None}
    if part := _part_of(section):
        return _with(settings, {"part": settings.part.having(part, chosen)})
    changed = _with(getattr(settings, section), chosen)
    return _with(settings, {section: changed})


def _with(before: T, values: Mapping[str, Any]) -> T:
    return type(before)(**{**vars(before), **values})


def _part_of(section: str) -> str:
    """`routers` of `part.routers`; empty: it is a section of the core's."""
    return section.removeprefix(f"{PART}.") if section.startswith(f"{PART}.") else ""


def read_at(section: str, name: str, of_parts: Mapping[str, type] = MappingProxyType({})) -> str:
    """When a setting is read: `start` of a daemon, also at `SIGHUP`, or by `tarazu run` for each `step`. `of_parts`:
    `part.NAME` → the section of each part, which says itself what is taken over (`RELOADED`).
    """
    taken = getattr(of_parts.get(section), "RELOADED", ()) if _part_of(section) else RELOADED.get(section, ())
    if name in taken:
        return "SIGHUP"
    return "step" if name in READ_EACH_STEP.get(section, ()) else "start"


def changed(
    before: Settings, after: Settings, of_parts: Mapping[str, type] = MappingProxyType({})
) -> dict[tuple[str, str], tuple[Any, Any]]:
    """(section, setting) → its two values, where they differ; of `of_parts` as of the core's sections. What is wrong in
    a part's section has its default.
    """
    differing: dict[tuple[str, str], tuple[Any, Any]] = {}
    for section, cls in {**SECTIONS, **(of_parts if before.part != after.part else {})}.items():
        was, now = (
            of.part.examined(part, cls)[0] if (part := _part_of(section)) else getattr(of, section)
            for of in (before, after)
        )
        for name in items(cls):
            if (old := getattr(was, name)) != (new := getattr(now, name)):
                differing[section, name] = old, new
    return differing


def reloaded(
    before: Settings, after: Settings, of_parts: Mapping[str, type] = MappingProxyType({})
) -> tuple[Settings, list[str]]:
    """`before` with what a running daemon may take over of `after`; what else differs, as `mdsd.requests`."""
    sections = {section: getattr(before, section) for section in SECTIONS}
    part, left = after.part, []
    for (section, name), (old, new) in changed(before, after, of_parts).items():
        is_taken = read_at(section, name, of_parts) != "start"
        if not is_taken:
            left.append(f"{section}.{name}")
        if its := _part_of(section):
            part = part if is_taken else part.having(its, {name: old})
        elif is_taken:
            sections[section] = _with(sections[section], {name: new})
    return Settings(part=part, **sections), left
