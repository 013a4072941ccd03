"""Is the site switched off, and can it be?"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from tarazu.doctor.finding import Finding, fail, ok, warn
from tarazu.doctor.node import Node
from tarazu.store.stop import site_stop

CHECK = "run.stop_file"


def look(node: Node) -> Iterator[Finding]:
    path = node.settings.run.stop_file
    if not path:
        yield warn(
            CHECK, "none: `tarazu disable --site` cannot switch jobs off", "name a path that all nodes see"
        )
        return
    stopped = site_stop(path)
    if stopped:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(stopped.since_s))
        yield warn(CHECK, f"the site is {stopped}, since {since}: no job is placed", "tarazu enable --site")
    elif os.path.lexists(path):
        mend = f"remove it, or: tarazu disable --site (as root); {Path(path).parent} must be root's too"
        yield fail(
            CHECK, f"{path} is there and does not count: others than root could have put it there", mend
        )
    else:
        yield from _of_directory(Path(path).parent, path)


def _of_directory(directory: Path, path: str) -> Iterator[Finding]:
    try:
        found = directory.stat()
    except FileNotFoundError:
        yield ok(CHECK, f"{path} is not there (nor is its directory): nothing is stopped")
        return
    if found.st_uid != 0 or found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        yield fail(
            CHECK,
            f"{directory} is uid {found.st_uid}'s, mode {mode:04o}: a stop file there would not count",
            f"chown root {directory}; chmod go-w {directory}",
        )
    else:
        yield ok(CHECK, f"{path} is not there: nothing is stopped")
