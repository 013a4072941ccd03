"""Which settings a running daemon takes over when it reads them again."""

from __future__ import annotations

import dataclasses
from typing import Any

from tarazu.config.sections import READ_EACH_STEP, RELOADED, SECTIONS, Settings


def read_at(section: str, name: str) -> str:
    """When a setting is read: `start` of a daemon, also at `SIGHUP`, or by `tarazu run` for each `step`."""
    if name in RELOADED.get(section, ()):
        return "SIGHUP"
    return "step" if name in READ_EACH_STEP.get(section, ()) else "start"


def changed(before: Settings, after: Settings) -> list[str]:
    """Settings that differ, as `mdsd.requests`."""
    return [
        f"{section}.{item.name}"
        for section, cls in SECTIONS.items()
        for item in dataclasses.fields(cls)
        if getattr(getattr(before, section), item.name) != getattr(getattr(after, section), item.name)
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
    sections = {
        section: dataclasses.replace(getattr(before, section), **taken[section]) for section in SECTIONS
    }
    return Settings(**sections), left
