"""Are the settings right, and can all who must read them do so? Is the site switched off?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tarazu.config.files import MORE
from tarazu.doctor.node import Finding, Node, fail, ok, warn
from tarazu.store.stop import site_stop
from tarazu.units import human_time


def look(node: Node) -> Iterator[Finding]:
    for wrong in node.mistakes:
        yield fail(wrong.where, f"expected {wrong.expected}, found {wrong.found!r}", "tarazu config check")
    if not node.mistakes:
        yield ok("settings", f"{', '.join(map(str, node.files)) or 'no file: the defaults'}, no mistake")
    if "launch" in node.roles:
        yield from _of_clientd(node)
    for where in node.former:
        place, _, why = where.partition(": no longer a setting: ")
        yield warn(place, f"no longer a setting: {why}", "remove the line")
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
        text = f"mode {stat.S_IMODE(mode):04o}, of uid {owner}: others than root can change it"
        yield fail(str(file), text, f"chown root {file}; chmod 644 {file}")
    elif not mode & 0o004:
        text = f"mode {stat.S_IMODE(mode):04o}: `tarazu run` of users, and the daemons, cannot read it"
        yield fail(str(file), text, f"chmod 644 {file}")


STOP_FILE = "run.stop_file"


def look_at_stop_file(node: Node) -> Iterator[Finding]:
    path = node.settings.run.stop_file
    if not path:
        yield warn(
            STOP_FILE,
            "none: `tarazu disable --site` cannot switch jobs off",
            "name a path that all nodes see",
        )
        return
    stopped = site_stop(path)
    if stopped:
        since = human_time(stopped.since_s, "%Y-%m-%d %H:%M")
        yield warn(
            STOP_FILE, f"the site is {stopped}, since {since}: no job is placed", "tarazu enable --site"
        )
    elif os.path.lexists(path):
        mend = f"remove it, or: tarazu disable --site (as root); {Path(path).parent} must be root's too"
        yield fail(
            STOP_FILE, f"{path} is there and does not count: others than root could have put it there", mend
        )
    else:
        yield from _of_stop_directory(Path(path).parent, path)


def _of_stop_directory(directory: Path, path: str) -> Iterator[Finding]:
    try:
        status = directory.stat()
    except FileNotFoundError:
        yield ok(STOP_FILE, f"{path} is not there (nor is its directory): nothing is stopped")
        return
    if status.st_uid != 0 or status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        yield fail(
            STOP_FILE,
            f"{directory} is uid {status.st_uid}'s, mode {mode:04o}: a stop file there would not count",
            f"chown root {directory}; chmod go-w {directory}",
        )
    else:
        yield ok(STOP_FILE, f"{path} is not there: nothing is stopped")
