"""Settings as text: as the configuration file takes them, and as the table of docs/settings.md."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

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
    return json.dumps(value, ensure_ascii=False)


def shown_default(item: dataclasses.Field[Any]) -> str:
    """A setting's default as the configuration file takes it; a size as `64M`."""
    value: Any = item.default
    return toml(exact_bytes(value) if item.metadata["size"] and value else value)


def table() -> str:
    """Markdown table of all settings, for docs/settings.md; defaults as the configuration file takes them."""
    lines = ["| setting | default | read at | what |", "|---|---|---|---|"]
    for section, cls in SECTIONS.items():
        for item in dataclasses.fields(cls):
            text = item.metadata["help"]
            if item.metadata["check"]:
                text += f" ({item.metadata['check'].expected})"
            when = read_at(section, item.name)
            lines.append(f"| `{section}.{item.name}` | `{shown_default(item)}` | {when} | {text} |")
    return "\n".join(lines)
