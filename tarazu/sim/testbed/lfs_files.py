"""The part of the stand-in `lfs` that lists and moves files: `find`, `migrate`, `hsm_state`, as lfs.py beside it.

find       -type f, -size +N[kMGT…], --print0; directories first to last as the disk has them
migrate    -n -b -v -D -W, and the options of setstripe; as Lustre's lfs.c a copy with the new layout is written under
           a name of its own, then the layouts are exchanged: the file keeps its inode. With -n by a lease that nobody
           gets while the file is open for writing, and that is broken by who opens it so
hsm_state  no file is known to HSM but those with the attribute user.testbed.hsm, whose text is printed

Exchanging needs the MDS: it is done in its files (sidecar.c), whose head is the identity of the inode.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import struct
import sys
from collections.abc import Iterator, Sequence

UNITS = {unit: 1 << 10 * n for n, unit in enumerate("bkmgtpe")}
SIDECAR = struct.Struct("<8sQQq6I")
"""Magic; inode, handle, time of birth; oid of the file, size of the blob, is_file, components, client, padding."""
DELAY_CREATE = os.O_NOCTTY | 0o20000
BUFFER_BYTES = 16 << 20
HSM = "user.testbed.hsm"
USAGE = """usage: migrate [SETSTRIPE_OPTIONS] [--bandwidth|-W BANDWIDTH_MB[MG]] [--block|-b] [--non-block|-n]
               [--non-direct|-D] [--verbose|-v] FILENAME ..."""


class MigrateFailed(Exception):
    """A message for stderr and an exit status."""


def migrate(words: Sequence[str]) -> int:
    """Raises Failed."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import lfs  # type: ignore[import-not-found]

    if any(word in ("-h", "--help") for word in words):
        print(USAGE)
        return 0
    rest, non_block, verbose = _own_options(words)
    try:
        parts, _, paths = lfs.parse(rest)
    except lfs.Failed as failed:
        raise MigrateFailed(*failed.args) from None
    if not paths:
        raise MigrateFailed("migrate: FILE must be specified", 1)
    status = 0
    for path in paths:
        try:
            _move(path, lfs.encode(parts), non_block)
            if verbose:
                print(path)
        except OSError as error:
            print(f"error: lfs migrate: {path}: {_stage(error)}: {error.strerror}", file=sys.stderr)
            status = error.errno or 1
    return status


def _own_options(words: Sequence[str]) -> tuple[list[str], bool, bool]:
    rest: list[str] = []
    non_block = verbose = False
    at = iter(words)
    for word in at:
        if word in ("-n", "--non-block"):
            non_block = True
        elif word in ("-v", "--verbose"):
            verbose = True
        elif word in ("-W", "--bandwidth", "--bandwidth-limit"):
            limit = next(at, "")
            if not limit.rstrip("MG").isdecimal():
                raise MigrateFailed(f"lfs migrate: invalid bandwidth '{limit}'", 1)
        elif word not in ("-b", "--block", "-D", "--non-direct"):
            rest.append(word)
    return rest, non_block, verbose


def _stage(error: OSError) -> str:
    stages = {errno.EBUSY: "cannot get lease", errno.EAGAIN: "cannot get lease", errno.EINVAL: "bad layout"}
    return stages.get(error.errno or 0, "data copy failed")


def _move(path: str, blob: bytes, non_block: bool) -> None:
    copy = os.path.join(os.path.dirname(path) or ".", f".VOLATILE:{os.getpid()}")
    os.close(os.open(path, os.O_RDWR))  # as lfs, which needs the right to write
    source = os.open(path, os.O_RDONLY)
    broken: list[int] = []
    try:
        if non_block:
            signal.signal(signal.SIGIO, lambda number, frame: broken.append(number))
            try:
                fcntl.fcntl(source, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            except OSError:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY)) from None
        of = os.fstat(source)
        target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | DELAY_CREATE, 0o600)
        try:
            os.setxattr(target, "lustre.lov", blob)
            at = 0
            while part := os.pread(source, BUFFER_BYTES, at):
                at += os.pwrite(target, part, at)
                if broken:
                    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
            os.close(target)
            target = -1
            _exchange(of.st_ino, os.stat(copy).st_ino)
        finally:
            if target >= 0:
                os.close(target)
            os.unlink(copy)
        os.utime(path, ns=(of.st_atime_ns, of.st_mtime_ns))
    finally:
        os.close(source)


def _exchange(one: int, other: int) -> None:
    """What the MDS knows of two inodes, but who they are."""
    places = [os.path.join(os.environ["TESTBED"], "mds", "layout", str(inode)) for inode in (one, other)]
    heads, bodies = [], []
    for place in places:
        with open(place, "rb") as file:
            content = file.read()
        heads.append(SIDECAR.unpack_from(content))
        bodies.append(content[SIDECAR.size :])
    for place, mine, its, body in zip(places, heads, heads[::-1], bodies[::-1], strict=True):
        head = SIDECAR.pack(*mine[:4], mine[4], *its[5:])
        with open(f"{place}.new", "wb") as file:
            file.write(head + body)
        os.replace(f"{place}.new", place)


def find(words: Sequence[str]) -> int:
    """Raises Failed."""
    if not words:
        raise MigrateFailed("find: DIRECTORY must be specified", 1)
    directory, *rest = words
    kind, least, form = "", 0, "%p\n"
    at = iter(rest)
    for word in at:
        if word in ("-type", "--type", "-t"):
            kind = next(at, "")
        elif word in ("-size", "--size", "-s"):
            least = _more_than(next(at, ""))
        elif word in ("-print0", "--print0", "-0"):
            form = "%p\0"
        elif word in ("-printf", "--printf"):
            form = re.sub(r"\\([nt\\])", lambda of: {"n": "\n", "t": "\t"}.get(of[1], of[1]), next(at, ""))
        elif word not in ("-lazy", "--lazy", "-l"):
            raise MigrateFailed(f"find: unknown option '{word}'", 1)
    if not os.path.isdir(directory):
        print(f"lfs find: cannot open '{directory}': No such file or directory", file=sys.stderr)
        return errno.ENOENT
    for path in _below(directory):
        is_file = os.path.isfile(path) and not os.path.islink(path)
        if (kind == "f" and not is_file) or (kind == "d" and not os.path.isdir(path)):
            continue
        if not least or (is_file and os.lstat(path).st_size >= least):
            shown = {"%p": path, "%s": str(os.lstat(path).st_size), "%%": "%"}
            text = re.sub("%[ps%]", lambda of, shown=shown: shown[of[0]], form)  # type: ignore[misc]
            sys.stdout.buffer.write(os.fsencode(text))
    sys.stdout.flush()
    return 0


def _more_than(text: str) -> int:
    """`+N[unit]` → the least size. A unit is needed: without one up to 2.15 bytes are meant, then blocks of 512. `c`
    (bytes) is refused up to 2.15.
    """
    number = text.removeprefix("+")
    unit = 0
    if number[-1:].lower() in UNITS:
        number, unit = number[:-1], UNITS[number[-1].lower()]
    if not unit or not text.startswith("+") or not number.isdecimal():
        raise MigrateFailed(f"find: bad size '{text}'", 1)
    return int(number) * unit + 1


def _below(directory: str) -> Iterator[str]:
    yield directory
    for where, directories, names in os.walk(directory):
        for name in [*directories, *names]:
            yield os.path.join(where, name)


def hsm_state(words: Sequence[str]) -> int:
    for path in words:
        try:
            state = os.getxattr(path, HSM).decode()
        except OSError as error:
            if error.errno == errno.ENOENT:
                print(f"can't get hsm state for {path}: No such file or directory", file=sys.stderr)
                return errno.ENOENT
            state = "(0x00000000)"
        print(f"{path}: {state}")
    return 0


COMMANDS = {"find": find, "migrate": migrate, "hsm_state": hsm_state}


def main(words: Sequence[str]) -> int:
    if not words or words[0] not in COMMANDS:
        print(f"lfs: expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    try:
        return COMMANDS[words[0]](words[1:])
    except MigrateFailed as failed:
        print(failed.args[0], file=sys.stderr)
        return int(failed.args[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
