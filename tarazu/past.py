"""Times of before, as a clock that may have been wrong noted them: none is later than now.

A clock that was ahead for two minutes leaves times that lie ahead when it is right again. Such a time counts as now:
what waits for so and so long then waits for that, and not until the clock is again where it had been.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def no_later(at_s: float, now_s: float) -> float:
    """A Unix time that was noted, or `now_s` for one that lies ahead."""
    return min(at_s, now_s)


def changed_s(path: str | Path, now_s: float, *, inode: bool = False) -> float:
    """When a file or directory was changed last (`inode`: also its owner, rights or name). A time that lies ahead is
    made now, where we may: so that it ages. Raises OSError.
    """
    status = os.lstat(path)
    at_s = max(status.st_mtime, status.st_ctime) if inode else status.st_mtime
    if at_s > now_s:
        with contextlib.suppress(OSError):
            os.utime(path, follow_symlinks=False)
    return no_later(at_s, now_s)
