"""What packages, or daemons that are gone, have left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tarazu import built
from tarazu.doctor.node import Finding, Node, fail, ok, warn
from tarazu.errors import TarazuError
from tarazu.part import setting_agents

LIBRARIES = (
    "usr/lib*/libtarazu.so",
    "usr/lib*/tarazu/libtarazu.so",
    "usr/lib*/*/tarazu/libtarazu.so",
    "usr/lib*/tarazu/**/lib/libtarazu.so",
    "usr/local/lib*/libtarazu.so",
    "opt/tarazu*/lib/libtarazu.so",
)
ENDS = (".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-dist", ".dpkg-new", ".ucf-dist")
"""Of configuration files that a package left for somebody to look at."""
SITE, PACKAGE = "/etc/systemd/system", ("/usr/lib/systemd/system", "/lib/systemd/system")
CHANGES = "changes.json"
"""There: what is set on the node."""
HELD = ("held", "stopped")
"""Beside it, by `undo` and `stop` of people: easily forgotten."""


def look(node: Node) -> Iterator[Finding]:
    findings = [*_libraries(node), *_files(node), *_units(node), *_noted(node)]
    yield from findings or [ok("left behind", "nothing")]


def _libraries(node: Node) -> Iterator[Finding]:
    try:
        mine = built.library_path("libtarazu.so").read_bytes()
    except (TarazuError, OSError):
        return
    for path in sorted({p.resolve() for pattern in LIBRARIES for p in node.system.glob(pattern)}):
        try:
            same = path.read_bytes() == mine
        except OSError:
            continue
        if not same:
            mend = "install the same version on launch and compute nodes, or remove the file"
            yield fail("libtarazu.so", f"{path} is not the library that `tarazu run` preloads", mend)


def _files(node: Node) -> Iterator[Finding]:
    for directory in ("/etc/tarazu", "/etc/tarazu/conf.d", "/etc/tarazu/keys"):
        try:
            left = sorted(p.name for p in node.path(directory).iterdir() if p.name.endswith(ENDS))
        except OSError:
            continue
        if left:
            yield warn(directory, ", ".join(left), "compare with the files in use, then remove")


def _units(node: Node) -> Iterator[Finding]:
    for path in sorted(node.path(SITE).glob("tarazu-*.service")):
        for place in PACKAGE:
            packaged = node.path(place) / path.name
            if packaged.exists() and packaged.read_bytes() != path.read_bytes():
                yield warn(
                    path.stem,
                    f"{path} replaces the package's unit",
                    f"systemctl revert {path.stem}; put changes into a drop-in (systemctl edit)",
                )
                break


def _noted(node: Node) -> Iterator[Finding]:
    running = _running(node)
    for of in setting_agents().values():
        daemon, directory = of.daemon, Path(of.place(node.settings))
        if not daemon:
            continue
        try:
            there = (directory / CHANGES).exists()
        except OSError:
            continue
        if there and daemon not in running:
            what = f"{directory / CHANGES}: lists what tarazu has set on this node, but {daemon} does not run"
            yield warn(f"{daemon} state", what, "tarazu change list; tarazu change undo --all")
        for path in (directory / name for name in HELD):
            try:
                by = path.read_text(errors="replace")[:200].strip()
            except OSError:
                continue
            what = f"{path}: nothing new is set on this node: {path.name} {by}".strip()
            yield warn(f"{daemon} {path.name}", what, "tarazu change apply, to let it set things again")


def _running(node: Node) -> set[str]:
    """Programs of tarazu that run here."""
    programs = set()
    for process in (node.system / "proc").glob("[0-9]*"):  # a deeper pattern raises where one ends meanwhile
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        programs |= {os.path.basename(word).decode(errors="replace") for word in words[:3]}
    return programs
