"""Writes down what the tarazu that it runs with sends and stores: `python -m tests.compat.make_golden DIRECTORY`.

tests/data/golden/README.md says when, and with which interpreter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from tarazu.lustre import EOF
from tarazu.model import Component, FileName, JobStep, Layout
from tarazu.store import control
from tarazu.store.placement_map import write_map
from tarazu.wire import local, messages
from tests.compat import ledgers, maps
from tests.compat.samples import plain, samples
from tests.compat.schema import describe

ODD = FileName("/a\udcff/b", "/a\udcff/b", "/a\udcff/b", False, 0, 0, 0)
PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))
UNTRIED = {"PlanReply": ("odd",)}
"""Fields that mean something only together with others."""


def escaped() -> Iterator[Any]:
    """Messages of the local socket with names that are no UTF-8."""
    yield local.DirectoriesWanted(("/plain", "/a\udcff"))
    yield local.DirectoryLayouts(b"\x00\xff", {"/a\udcff": b"\x01"})
    yield local.PlansQuery(key="/a\udcff")
    yield local.PlanRequest(JobStep("lustre", 1000, "app\udcff", "7"), 1, (0, 1), (0,))
    files = (local.PlannedFile(1, ODD, 7, 0, ((0, 1),), 0),)
    yield local.PlanReply("planned", layouts=(PLAIN,), files=files)


def book(kinds: tuple[type, ...], found: list[Any], encode: Callable[[Any], bytes]) -> dict[str, Any]:
    entries: dict[bytes, dict[str, Any]] = {}
    for message in found:
        data = encode(message)
        entries.setdefault(data, {"kind": type(message).__name__, "hex": data.hex(), "value": plain(message)})
    return {**describe(kinds), "messages": list(entries.values())}


def of_kinds(kinds: tuple[type, ...]) -> list[Any]:
    return [each for kind in kinds for each in samples(kind, UNTRIED.get(kind.__name__, ()))]


def write_wire(directory: Path) -> None:
    kinds = get_args(messages.Message)
    save(directory / "wire.json", book(kinds, of_kinds(kinds), messages.encode))
    kinds = get_args(local.LocalMessage)
    save(directory / "local.json", book(kinds, [*of_kinds(kinds), *escaped()], local.encode))


def write_maps(directory: Path) -> None:
    folder = directory / "maps"
    folder.mkdir(exist_ok=True)
    lookups = {}
    for case in maps.CASES:
        path = folder / f"{case}.map"
        write_map(path, **maps.writing(case))
        lookups[case] = [maps.found(path, row) for row in maps.rows(case)]
    save(folder / "found.json", lookups)
    control.write_control(folder)
    control.announce(folder, 3)
    control.stop(folder, "the owner's reason")
    control.set_site_stop(folder, "the site's reason")


def save(path: Path, value: dict[str, Any]) -> None:
    """JSON with one entry a line, so that a difference between versions can be read."""
    parts = []
    for name, part in value.items():
        inner = part.items() if isinstance(part, dict) else None
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in inner] if inner else map(json.dumps, part)
        begin, end = "{}" if inner else "[]"
        parts.append(f"{json.dumps(name)}: {begin}\n" + ",\n".join(lines) + f"\n{end}")
    path.write_text("{" + ",\n".join(parts) + "}\n")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("make_golden: one directory expected", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    write_wire(directory)
    write_maps(directory)
    ledgers.write(directory / "ledger")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
