"""On which file systems an application has written lately: on those its next step is planned for."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.errors import TraceError
from tarazu.trace.history import History

RECENT_STEPS = 3
"""A file system on which none of so many newest steps of an application created a file is not planned for."""


def used_lately(history: History, fs_names: Sequence[str], application: str) -> list[str]:
    """Those of the file systems on which the application's newest steps created files; empty without any history.

    The runs of one step on several file systems have one start, which their names tell.
    """
    starts: dict[str, list[str]] = {}
    for fs_name in fs_names:
        try:
            paths = history.paths(fs_name, application)[-RECENT_STEPS:]
        except TraceError:
            continue  # named when it is planned from
        starts[fs_name] = [path.name.partition("-")[0] for path in paths]
    newest = sorted({start for of in starts.values() for start in of})[-RECENT_STEPS:]
    return [fs_name for fs_name in fs_names if set(starts.get(fs_name, ())) & set(newest)]
