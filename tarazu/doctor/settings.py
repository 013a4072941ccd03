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
        yield ok(
            "settings", f"{', '.join(map(str, node.files)) or 'no file, the defaults apply'}: no mistake"
        )
    if "launch" in node.roles:
        yield from _of_clientd(node)
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
                f"not read, because the names do not end in .toml: {', '.join(left)}",
                "remove or rename them",
            )


def _of_clientd(node: Node) -> Iterator[Finding]:
    """`config check` passes over files that are not there: they may be another node's."""
    path = node.settings.layout.pfl_file
    if path and not Path(path).exists():
        yield fail(
            "layout.pfl_file", f"{path} does not exist: clientd does not start", "copy it to the launch nodes"
        )


def _of_file(file: Path) -> Iterator[Finding]:
    try:
        mode, owner = file.stat().st_mode, file.stat().st_uid
    except OSError:
        return
    if mode & 0o022 or (owner != 0 and str(file).startswith("/etc/")):
        text = f"mode {stat.S_IMODE(mode):04o}, owner uid {owner}: users other than root can change it"
        yield fail(str(file), text, f"chown root {file}; chmod 644 {file}")
    elif not mode & 0o004:
        text = f"mode {stat.S_IMODE(mode):04o}: users and daemons cannot read it"
        yield fail(str(file), text, f"chmod 644 {file}")


STOP_FILE = "run.stop_file"


def look_at_stop_file(node: Node) -> Iterator[Finding]:
    path = node.settings.run.stop_file
    if not path:
        yield warn(
            STOP_FILE,
            "not set: `tarazu disable --site` does not work",
            "set it to a path that all nodes share",
        )
        return
    stopped = site_stop(path)
    if stopped:
        since = human_time(stopped.since_s, "%Y-%m-%d %H:%M")
        yield warn(
            STOP_FILE, f"the site is {stopped}, since {since}: no files are placed", "tarazu enable --site"
        )
    elif os.path.lexists(path):
        mend = f"remove it, or run tarazu disable --site as root; {Path(path).parent} must belong to root too"
        yield fail(
            STOP_FILE, f"{path} exists but is ignored: users other than root could have created it", mend
        )
    else:
        yield from _of_stop_directory(Path(path).parent, path)


def _of_stop_directory(directory: Path, path: str) -> Iterator[Finding]:
    try:
        status = directory.stat()
    except FileNotFoundError:
        yield ok(STOP_FILE, f"{path} does not exist, nor does its directory: nothing is stopped")
        return
    if status.st_uid != 0 or status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        yield fail(
            STOP_FILE,
            f"{directory} belongs to uid {status.st_uid}, mode {mode:04o}: a stop file in it would be ignored",
            f"chown root {directory}; chmod go-w {directory}",
        )
    else:
        yield ok(STOP_FILE, f"{path} does not exist: nothing is stopped")
