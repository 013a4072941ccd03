"""Are the settings right, and can all who must read them do so?"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from tarazu.config.files import MORE
from tarazu.doctor.finding import Finding, fail, ok, warn
from tarazu.doctor.node import Node


def look(node: Node) -> Iterator[Finding]:
    for wrong in node.mistakes:
        yield fail(wrong.where, f"expected {wrong.expected}, found {wrong.found!r}", "tarazu config check")
    if not node.mistakes:
        yield ok("settings", f"{', '.join(map(str, node.files)) or 'no file: the defaults'}, no mistake")
    if "launch" in node.roles:
        yield from _of_clientd(node)
    for where in node.former:
        yield warn(where, "no setting any more, passed over", "remove the line")
    for file in node.files:
        yield from _of_file(file)
    for directory in {file.parent / MORE for file in node.files if file.parent.name != MORE}:
        left = (
            sorted(p.name for p in directory.glob("*") if not p.name.endswith(".toml"))
            if directory.is_dir()
            else []
        )
        if left:
            yield warn(
                str(directory),
                f"not read, for they end otherwise than .toml: {', '.join(left)}",
                "remove them",
            )


def _of_clientd(node: Node) -> Iterator[Finding]:
    """`config check` passes over files that are not there: they may be another node's."""
    path = node.settings.layout.pfl_file
    if path and not Path(path).exists():
        yield fail(
            "layout.pfl_file", f"{path} is not there: clientd does not start", "copy it to launch nodes"
        )


def _of_file(file: Path) -> Iterator[Finding]:
    try:
        mode, owner = file.stat().st_mode, file.stat().st_uid
    except OSError:
        return
    if mode & 0o022 or (owner != 0 and str(file).startswith("/etc/")):
        found = f"mode {stat.S_IMODE(mode):04o}, of uid {owner}: others than root can change it"
        yield fail(str(file), found, f"chown root {file}; chmod 644 {file}")
    elif not mode & 0o004:
        found = f"mode {stat.S_IMODE(mode):04o}: `tarazu run` of users, and the daemons, cannot read it"
        yield fail(str(file), found, f"chmod 644 {file}")
