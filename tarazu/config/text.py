"""Settings as text: as the configuration file takes them, and as the table of docs/settings.md."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tarazu.config.check import Item, items
from tarazu.config.reading import read_at
from tarazu.config.sections import SECTIONS
from tarazu.units import exact_bytes


def without_password(location: str) -> str:
    """A database's location as it may be shown: `mysql://user:***@host/name`."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", location)


def toml(value: Any) -> str:
    """A value as the configuration file takes it."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(toml, value))}]"
    import json  # slow to import, and a job's start writes no TOML

    return json.dumps(value, ensure_ascii=False)


def shown_default(item: Item) -> str:
    """A setting's default as the configuration file takes it; a size as `64M`."""
    value: Any = item.default
    return toml(exact_bytes(value) if item.size and value else value)


def table(sections: Mapping[str, type] = MappingProxyType(SECTIONS)) -> str:
    """All settings in Markdown, the core's or a part's; defaults as the configuration file takes them."""
    lines = list[str]()
    for section, cls in sections.items():
        lines += [f"## `[{section}]`", ""]
        for item in items(cls).values():
            when = read_at(section, item.name, sections)
            lines.append(f"- `{section}.{item.name}` = `{shown_default(item)}` ({when}): {_help(item)}")
        lines.append("")
    return "\n".join(lines)


def _help(item: Item) -> str:
    """What a setting does, with what is expected of it where the sentence does not name each choice."""
    text, check = item.text, item.check
    if not check:
        return text
    choices = check.expected.removeprefix("one of ").split(", ")
    named = check.expected.startswith("one of ") and all(name in text for name in choices)
    return text if named else f"{text} ({check.expected})"


HEAD = """\
tarazu's settings; one file serves all nodes. What is commented out has the default that stands here. The files of
conf.d beside this one are read after it, in the order of their names. `tarazu config check` names mistakes.
A change counts: where it says SIGHUP, after `systemctl reload 'tarazu-*'`; where it says start, after a restart;
where it says step, with the next job step. Sizes are written as 64M or 1G. tarazu.toml(5) says the same.
"""


def commented(of_parts: Mapping[str, type] = MappingProxyType({})) -> str:
    """A configuration file with every setting as a comment: its default, what it does, and when it is read. `of_parts`:
    `part.NAME` → the section of each part that is here.
    """
    lines = [f"# {line}" for line in HEAD.splitlines()]
    for section, cls in {**SECTIONS, **of_parts}.items():
        lines += ["", "", f"[{section}]"]
        for item in items(cls).values():
            text = f"{_help(item)} [{read_at(section, item.name, of_parts)}]"
            lines += ["", *textwrap.wrap(text, 110, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"#{item.name} = {shown_default(item)}")
    return "\n".join(lines) + "\n"
