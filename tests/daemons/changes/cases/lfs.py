"""`lfs setstripe` of directories that lie on no Lustre: `lfs.py ROOT setstripe WORDS DIRECTORY`.

The options are read, and `lustre.lov` is made, as on the testbed. A directory's default lies in it as `.lov`. A job is
at once there that makes a directory below, which gets a copy. A name that is not there becomes an empty file.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from pathlib import Path

from tarazu.sim.testbed import lfs


def default_of(path: str | Path) -> bytes:
    try:
        return (Path(path) / ".lov").read_bytes()
    except FileNotFoundError:
        Path(path).stat()
        return b""


def main(words: Sequence[str]) -> int:
    parts, delete, paths = lfs.parse(words[2:])
    for name in paths:
        path = Path(name)
        if not path.is_dir():
            if name.endswith("/."):
                return errno.ENOENT
            path.touch()
            continue
        if delete:
            (path / ".lov").unlink(missing_ok=True)
            continue
        blob = lfs.encode(parts)
        (path / ".lov").write_bytes(blob)
        below = path / f"made-{len(list(path.glob('made-*')))}"
        below.mkdir()
        (below / ".lov").write_bytes(blob)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
