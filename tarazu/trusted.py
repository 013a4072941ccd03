"""Directories that nobody but root and this user can change, and files there that are this user's alone.

Where everybody may write, as in `/dev/shm`, somebody else may have made a directory of the name that is looked for, and
put links, pipes and other directories into it, also at any later moment. So each directory is reached through the
descriptor of the one above it, every one on the way has to be root's or the user's, and writable by nobody else or
sticky. What is named below such a directory stays what it is. `preload/process/trusted.c` has the same rule.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tarazu.errors import TarazuError

Name = str | os.PathLike[str]

LINKS = 8
"""So many symbolic links may be on the way: root's or the user's."""
NOBODY = 65534
_ENTRY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def open_directory(path: Name, *, make: bool = False, in_home: bool = False) -> int:
    """A descriptor (O_PATH) of a directory of this user's that others cannot write to.

    `make`: what is missing of it is made; `in_home`: what is above it in the user's home is taken as it is. Raises
    TarazuError where others could change what lies there, OSError.
    """
    path = from_root(path)
    if in_home:
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        at = os.open(path, _ENTRY | os.O_DIRECTORY)
    else:
        at = _walk(path, make)
    status = os.fstat(at)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
        os.close(at)
        raise _Changeable(path)
    return at


def from_root(path: Name) -> str:
    """The working directory may be gone, as that of a job that has cleaned up: it is looked for where it is needed."""
    path = os.fspath(path)
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def is_changeable(path: Name) -> bool:
    """Could others change what is made in this directory, or where it is to be made?"""
    try:
        os.close(_walk(os.path.join(from_root(path), "-"), make=False))
    except TarazuError:
        return True
    except OSError:
        pass
    return False


def by_descriptor(directory: int) -> Path:
    """A path for what takes one: it leads to the directory that is open, whatever becomes of its name."""
    return Path(f"/proc/self/fd/{directory}")


def shown(path: Name) -> str:
    """For people: with the directory's name where the path begins with its descriptor."""
    whole = os.fspath(path)
    start = re.match(r"/proc/self/fd/\d+(?=/|$)", whole)
    if start is None:
        return whole
    try:
        return os.readlink(start[0]) + whole[start.end() :]
    except OSError:
        return whole


@contextlib.contextmanager
def opened(path: Name, *, in_home: bool = False) -> Iterator[Path]:
    """The path of a directory that is open meanwhile. Raises as `open_directory`."""
    directory = open_directory(path, in_home=in_home)
    try:
        yield by_descriptor(directory)
    finally:
        os.close(directory)


def open_file(path: Name, flags: int = os.O_RDONLY, *, own: bool = True) -> int:
    """A descriptor of a regular file, mode 0600 if it is made; never waits.

    `own`: it has to be this user's, under this name alone, and no link. Raises OSError, also where it is not.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if own else 0)
    descriptor = os.open(path, flags, 0o600)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and (not own or (status.st_uid == os.geteuid() and status.st_nlink == 1)):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{os.fspath(path)}: expected a file of uid {os.geteuid()}, under one name")


def remove(path: Name, directory: int) -> None:
    """Remove a directory that is open, with what is in it; what cannot be removed stays."""
    here = by_descriptor(directory)
    with contextlib.suppress(OSError):
        for entry in os.scandir(here):
            if entry.is_dir(follow_symlinks=False):
                _remove_directory(here / entry.name)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(here / entry.name)
        os.rmdir(path)


def _remove_directory(path: Path) -> None:
    try:
        os.rmdir(path)
    except OSError:
        from shutil import rmtree  # slow to import, and most are empty

        rmtree(path, ignore_errors=True)


class _Changeable(TarazuError):
    def __init__(self, path: Name) -> None:
        super().__init__(f"{os.fspath(path)}: expected a directory that no other user can change")


def _walk(path: str, make: bool) -> int:
    """Entry by entry; the last one may be anything but a link."""
    at = _root()
    ahead = path.split("/")[::-1]
    shared, links = False, 0
    try:
        while ahead:
            name = ahead.pop()
            if name in ("", "."):
                continue
            if not _is_fit(os.fstat(at), shared):
                raise _Changeable(path)
            shared = shared or bool(os.fstat(at).st_mode & _OTHERS)
            entry = _enter(at, name, make)
            link = os.fstat(entry)
            if not stat.S_ISLNK(link.st_mode):
                os.close(at)
                at = entry
                continue
            try:
                links += 1
                if not any(ahead) or links > LINKS or link.st_nlink != 1 or not _is_ours(link, shared):
                    raise _Changeable(path)
                target = os.readlink("", dir_fd=entry)
            finally:
                os.close(entry)
            ahead += target.split("/")[::-1]
            if target.startswith("/"):
                os.close(at)
                at = _root()
    except BaseException:
        os.close(at)
        raise
    return at


def _root() -> int:
    return os.open("/", _ENTRY | os.O_DIRECTORY)


def _enter(at: int, name: str, make: bool) -> int:
    """The entry as it is, a link too."""
    try:
        return _look(at, name)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=at)
    return _look(at, name)


def _look(at: int, name: str) -> int:
    try:
        return os.open(
            name, _ENTRY | os.O_DIRECTORY, dir_fd=at
        )  # the kernel mounts what is mounted on demand
    except NotADirectoryError:
        return os.open(name, _ENTRY, dir_fd=at)


def _is_fit(found: os.stat_result, shared: bool) -> bool:
    """`shared`: others can write to a directory on the way, so what comes below it may be anybody's."""
    kept = not found.st_mode & _OTHERS or bool(found.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(found.st_mode) and _is_ours(found, shared) and kept


def _is_ours(found: os.stat_result, shared: bool) -> bool:
    ours = found.st_uid in (0, os.geteuid())
    return ours or (found.st_uid == NOBODY and not shared and _is_namespace())


def _is_namespace() -> bool:
    """In a user namespace, which containers have, what is root's may be shown as nobody's, like what is anybody's."""
    try:
        return "4294967295" not in Path("/proc/self/uid_map").read_text()
    except OSError:
        return False


ENTER = """\
umask 077; set -C
me=$(id -u)
look() { # PATH: what it is, a link too
    about=$(stat -c '%f %u %h' "$1" 2>/dev/null) || return 1
    mode=$((0x${about%% *})) names=${about##* } about=${about% *}; uid=${about#* }
}
ours() {
    [ "$uid" = 0 ] || [ "$uid" = "$me" ] ||
        { [ "$uid" = 65534 ] && [ -z "$shared" ] && ! grep -q 4294967295 /proc/self/uid_map; }
}
enter() { # DIRECTORY [make]: stands in it then. 1: it is not there; 2: others could change what lies there
    way=$1/ links=0 shared=
    case $way in /*) cd -P / && look . || return 1;; *) return 2;; esac
    while [ -n "$way" ]; do
        part=${way%%/*} way=${way#*/}
        case $part in ''|.) continue;; esac
        ours && { [ $((mode & 022)) = 0 ] || { shared=yes; [ $((mode & 01000)) != 0 ]; }; } || return 2
        look "./$part" || { [ -n "${2-}" ] && { mkdir "./$part" 2>/dev/null; look "./$part"; }; } || return 1
        ours || return 2
        case $((mode >> 12)) in
        4) cd -P "./$part" || return 1;;
        10) links=$((links + 1)); [ "$names" = 1 ] && [ -n "$way" ] && [ $links -le 8 ] || return 2
            part=$(readlink "./$part") && way=$part/$way || return 1
            case $part in /*) cd -P / || return 1;; esac
            look . || return 1;;
        *) return 2;;
        esac
    done
    [ "$uid" = "$me" ] && [ $((mode & 022)) = 0 ] || return 2
}
remove() { # DIRECTORY, if it is such a one
    enter "$1" && cd -P .. && rm -rf "./${1##*/}"
}
"""
"""The same for shells, on nodes without Python: goes into a directory that only root and this user can change; what is
done there then by relative names leads nowhere else. Nothing that is there is written over. Needs coreutils."""
