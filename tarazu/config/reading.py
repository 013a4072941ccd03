"""From a configuration file and the environment to settings, and which of them a running daemon takes over."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from tarazu.config.check import Check
from tarazu.config.sections import FORMER, READ_EACH_STEP, RELOADED, SECTIONS, Settings
from tarazu.errors import ConfigError
from tarazu.units import parse_bytes

log = logging.getLogger("tarazu.config")

DEFAULT_FILE = Path("/etc/tarazu/tarazu.toml")


def load(path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from `path` (else $TARAZU_CONFIG, else /etc/tarazu/tarazu.toml) and the environment.

    Raises ConfigError naming the file and the line or key, what was expected and what was found.
    """
    environ = os.environ if environ is None else environ
    chosen = path or environ.get("TARAZU_CONFIG") or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    text, data = _read(Path(chosen)) if chosen else ("", {})
    sections: dict[str, Any] = {}
    for section, values in data.items():
        if section not in SECTIONS:
            pattern = rf"\[\s*{re.escape(section)}\b|{re.escape(section)}\s*="
            where = f"{chosen}{_line_of(text, pattern)}"
            raise ConfigError(where, "a section among " + ", ".join(SECTIONS), section)
        if not isinstance(values, dict):
            raise ConfigError(str(chosen), f"a table [{section}]", values)
    for section, cls in SECTIONS.items():
        sections[section] = _section(cls, section, data.get(section, {}), chosen, text, environ)
    settings = Settings(**sections)
    pair = (settings.mdsd.replication, settings.standby.statistics, settings.standby.requests)
    if any(pair) and not all(pair):
        expected = "mdsd.replication, standby.statistics and standby.requests, or none of them"
        raise ConfigError(f"{chosen or 'environment'}: [standby]", expected, " ".join(filter(None, pair)))
    return settings


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(path), "a readable configuration file", error.strerror) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "a configuration file in UTF-8", "other bytes") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), "TOML", str(error)) from None


def _section(
    cls: type, section: str, values: dict[str, Any], path: Any, text: str, environ: Mapping[str, str]
) -> Any:
    known = {f.name: f for f in dataclasses.fields(cls)}
    hints = get_type_hints(cls)
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        line = _line_of(text, rf"{re.escape(name)}\s*=", section)
        where = f"{path}{line}: [{section}] {name}"
        if name in FORMER.get(section, ()):
            log.info("%s: no setting any more, passed over", where)
            continue
        if name not in known:
            raise ConfigError(where, "a setting among " + ", ".join(known), name)
        chosen[name] = _convert(value, hints[name], known[name], where)
    for name, item in known.items():
        variable = f"TARAZU_{section.upper()}_{name.upper()}"
        if variable in environ:
            chosen[name] = _convert(
                _from_text(environ[variable], hints[name]), hints[name], item, f"${variable}"
            )
    return cls(**chosen)


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
        return [part for part in text.split(":") if part]
    return text


def _convert(value: Any, kind: Any, item: dataclasses.Field[Any], where: str) -> Any:
    found = value
    if item.metadata["size"] and isinstance(value, str):
        try:
            value = parse_bytes(value)
        except ValueError:
            raise ConfigError(where, "a size such as 64M", found) from None
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
    check: Check | None = item.metadata["check"]
    if check and not check.holds(value):
        raise ConfigError(where, check.expected, found)
    return value


def _line_of(text: str, pattern: str, section: str = "") -> str:
    """`:12`, the line where `pattern` first stands (below `[section]`), or nothing."""
    inside = not section
    for number, line in enumerate(text.splitlines(), 1):
        if section and (header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)):
            inside = header[1] == section
        if inside and re.match(rf"\s*(?:{pattern})", line):
            return f":{number}"
    return ""


def override(settings: Settings, section: str, **values: Any) -> Settings:
    """`settings` with those values of one section that are not None: options of a command line."""
    chosen = {name: value for name, value in values.items() if value is not None}
    changed = dataclasses.replace(getattr(settings, section), **chosen)
    return dataclasses.replace(settings, **{section: changed})


def read_at(section: str, name: str) -> str:
    """When a setting is read: `start` of a daemon, also at `SIGHUP`, or by `tarazu run` for each `step`."""
    if name in RELOADED.get(section, ()):
        return "SIGHUP"
    return "step" if name in READ_EACH_STEP.get(section, ()) else "start"


def reloaded(before: Settings, after: Settings) -> tuple[Settings, list[str]]:
    """`before` with what a running daemon may take over of `after`; what else differs, as `mdsd.requests`."""
    sections: dict[str, Any] = {}
    left = []
    for section in SECTIONS:
        old, new = getattr(before, section), getattr(after, section)
        names = [f.name for f in dataclasses.fields(old) if getattr(old, f.name) != getattr(new, f.name)]
        left += [f"{section}.{name}" for name in names if read_at(section, name) == "start"]
        taken = {name: getattr(new, name) for name in names if read_at(section, name) != "start"}
        sections[section] = dataclasses.replace(old, **taken)
    return Settings(**sections), left
