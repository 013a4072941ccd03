"""The PFL file: which paths get which progressive layout (paper, section 5.5.2, figure 12).

An INI file; the first section whose glob matches the path below the mount wins (`*` also crosses `/`):

    [ior-c1]
    match = /ior/*
    components = 0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16
    pool = flash            # optional
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tarazu.errors import LayoutError
from tarazu.lustre import EOF, LOV_MAX_STRIPE_COUNT, LOV_MIN_STRIPE_SIZE
from tarazu.units import parse_bytes

_KEYS = ("match", "components", "pool")


@dataclass(frozen=True)
class PflExtent:
    """One extent [start, end) and its stripe count."""

    start_bytes: int
    end_bytes: int
    stripe_count: int


@dataclass(frozen=True)
class PflRule:
    """One section of the file."""

    name: str
    patterns: tuple[str, ...]
    extents: tuple[PflExtent, ...]
    pool: str = ""

    def matches(self, key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in self.patterns)


def read(path: str | Path) -> tuple[PflRule, ...]:
    """The rules of a PFL file, in order. Raises LayoutError naming file, line or key."""
    if Path(path).is_fifo():  # nobody may write into it: clientd would wait at a SIGHUP
        raise LayoutError(str(path), "a PFL file", "a pipe")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise LayoutError(str(path), "a readable PFL file", error.strerror) from None
    except UnicodeDecodeError:
        raise LayoutError(str(path), "a PFL file in UTF-8", "other bytes") from None
    return parse(text, str(path))


def parse(text: str, where: str = "PFL file") -> tuple[PflRule, ...]:
    """`read` for text that is already there."""
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    try:
        parser.read_string(text)
    except configparser.MissingSectionHeaderError as error:
        raise LayoutError(f"{where}:{error.lineno}", "a [section]", error.line.strip()) from None
    except (configparser.DuplicateSectionError, configparser.DuplicateOptionError) as error:
        raise LayoutError(f"{where}:{error.lineno}", "each name once", _one_line(error)) from None
    except configparser.ParsingError as error:
        line = error.errors[0][0] if error.errors else 0
        raise LayoutError(
            f"{where}:{line}", "`name = value`", error.errors[0][1] if error.errors else ""
        ) from None
    return tuple(_rule(parser[name], text, where) for name in parser.sections())


def _rule(section: configparser.SectionProxy, text: str, where: str) -> PflRule:
    for key in section:
        if key not in _KEYS:
            raise LayoutError(_place(text, where, section.name, key), "match, components or pool", key)
    for key in _KEYS[:2]:
        if not section.get(key, "").strip():
            raise LayoutError(_place(text, where, section.name, ""), f"a line `{key} = …`", "none")
    patterns = tuple(section["match"].split())
    for pattern in patterns:
        if not pattern.startswith(("/", "*")):
            place = _place(text, where, section.name, "match")
            raise LayoutError(place, "a glob of the path below the mount, such as /ior/*", pattern)
    place = _place(text, where, section.name, "components")
    return PflRule(
        section.name, patterns, _extents(section["components"], place), section.get("pool", "").strip()
    )


def _extents(text: str, where: str) -> tuple[PflExtent, ...]:
    extents: list[PflExtent] = []
    for part in text.replace("\n", " ").split(","):
        match = re.fullmatch(r"\s*([^-\s:]+)\s*-\s*([^-\s:]+)\s*:\s*(\d+)\s*", part)
        if not match:
            raise LayoutError(where, "components such as 0-128M:1, 128M-EOF:8", part.strip())
        try:
            start = parse_bytes(match[1])
            end = EOF if match[2].upper() == "EOF" else parse_bytes(match[2])
        except ValueError as error:
            raise LayoutError(where, "sizes such as 128M or EOF", str(error)) from None
        expected = extents[-1].end_bytes if extents else 0
        if start != expected:
            raise LayoutError(where, f"extents without a gap (next start {expected})", part.strip())
        if end <= start or (end != EOF and end % LOV_MIN_STRIPE_SIZE):
            raise LayoutError(where, "an end above its start and a multiple of 64K", part.strip())
        if not 1 <= int(match[3]) <= LOV_MAX_STRIPE_COUNT:
            raise LayoutError(where, f"a stripe count from 1 to {LOV_MAX_STRIPE_COUNT}", part.strip())
        extents.append(PflExtent(start, end, int(match[3])))
    if extents[-1].end_bytes != EOF:
        raise LayoutError(
            where, "a last component that ends at EOF (a write past it would fail)", text.strip()
        )
    return tuple(extents)


def _place(text: str, where: str, section: str, key: str) -> str:
    """`file:line: [section] key`."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[(.+?)\]", line)
        if header:
            inside = header[1] == section
        if inside and (not key or re.match(rf"\s*{re.escape(key)}\s*[=:]", line, re.IGNORECASE)):
            return f"{where}:{number}: [{section}] {key}".rstrip()
    return f"{where}: [{section}] {key}".rstrip()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
