"""systemd's unit files as they lie on a node, drop-ins included; read without systemd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tarazu.doctor.node import Node

PLACES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
"""The first that has a unit counts."""


def unit_file(node: Node, name: str) -> Path | None:
    """Of the unit `name`, such as tarazu-ossd."""
    places = (*PLACES, "/lib/systemd/system")
    return next((path for p in places if (path := node.path(f"{p}/{name}.service")).exists()), None)


def values(node: Node, name: str, key: str) -> list[str]:
    """What the unit says for `key` in [Service], in order; an empty value takes back what was said before."""
    found: list[str] = []
    for path in _files(node, name):
        section = ""
        for line in path.read_text(errors="replace").splitlines():
            words = line.strip()
            if words.startswith("["):
                section = words
            elif section == "[Service]" and words.partition("=")[0].strip() == key:
                value = words.partition("=")[2].strip()
                found = [*found, value] if value else []
    return found


def capabilities(node: Node, name: str) -> list[str]:
    """That the unit leaves its daemon, as `cap_dac_read_search`."""
    if unit_file(node, name) is None:
        return ["cap_dac_read_search"]
    return [word.lower() for value in values(node, name, "AmbientCapabilities") for word in value.split()]


def _files(node: Node, name: str) -> Iterator[Path]:
    main = unit_file(node, name)
    if main is not None:
        yield main
    drop_ins = {
        path.name: path
        for p in reversed(PLACES)
        for path in node.path(f"{p}/{name}.service.d").glob("*.conf")
    }
    yield from (drop_ins[name] for name in sorted(drop_ins))
