"""`lfs mkdir`, `setdirstripe`, `getdirstripe -m`, `mdts` of directories that lie on no Lustre: `lfs_mdt.py ROOT WORDS`.

What a directory has of its own lies in ROOT/lmv/INODE: its MDT in the first line, its default behind it, as an MDS
keeps it. A job is at once there that makes a directory below one with a default, which gets a copy. It is root's, and
has two MDTs and one that is away.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tarazu.parts.mdt import lmv

MDTS = (
    "MDTS:\n0: lustre-MDT0000_UUID ACTIVE\n1: lustre-MDT0001_UUID ACTIVE\n2: lustre-MDT0002_UUID INACTIVE\n"
)
LAST = 2


def _file(path: str | Path, root: Path) -> Path:
    return root / "lmv" / str(os.lstat(path).st_ino)


def of(path: str | Path, root: Path) -> tuple[int, bytes]:
    """Its MDT, and its default. Raises OSError."""
    try:
        mdt, _, default = _file(path, root).read_bytes().partition(b"\n")
    except FileNotFoundError:
        os.lstat(path)
        return 0, b""
    return int(mdt), default


def put(path: str | Path, root: Path, mdt: int, default: bytes) -> None:
    file = _file(path, root)
    file.parent.mkdir(exist_ok=True)
    file.with_suffix(".new").write_bytes(b"%d\n%s" % (mdt, default))
    file.with_suffix(".new").rename(file)


def copy_of(path: Path, root: Path) -> bytes:
    """The default that a new subdirectory gets."""
    default = lmv.of_blob(own) if (own := of(path, root)[1]) else None
    copy = default.below if default else None
    return lmv.to_blob(copy) if copy else b""


def make(path: Path, root: Path, mdt: int | None = None) -> None:
    """As `mkdir`, or as `lfs mkdir -i`."""
    mdt_above, above = of(path.parent, root)
    default = lmv.of_blob(above) if above else None
    path.mkdir()
    if mdt is not None:
        put(path, root, mdt, lmv.to_blob(lmv.DefaultLmv(mdt, 0)))
    else:
        chosen = default.mdt if default and default.mdt != lmv.ANY_MDT else mdt_above
        put(path, root, chosen, copy_of(path.parent, root))


def main(words: Sequence[str]) -> int:
    root, verb, *options = Path(words[0]), *words[1:]
    name = options[-1]
    try:
        if verb == "mdts":
            print(MDTS, end="")
        elif verb == "getdirstripe":
            print(of(name, root)[0])
        elif verb == "mkdir":
            os.umask(0o022)
            make(Path(name), root, int(options[options.index("-i") + 1]))
        elif options[0] == "-d":
            put(name, root, of(name, root)[0], b"")
        else:
            default = lmv.parsed(" ".join(options[1:-1]))
            if default.mdt > LAST:
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            put(name, root, of(name, root)[0], lmv.to_blob(default))
            make(Path(name) / f"made-{len(os.listdir(name))}", root)
    except OSError as error:
        print(f"lfs {verb}: {name}: {error.strerror}", file=sys.stderr)
        return error.errno or 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
