"""On which MDT directories are made: the default of an existing one's new subdirectories (`lfs setdirstripe -D`), and a
new directory itself (`lfs mkdir -i`). Both for root, who may where users may not.

A default is changed where nobody has chosen an MDT by name, and noted whole. Directories that are made below get a
copy, and lose it too. A new directory is removed again only while it is empty and as it was made.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shlex
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from tarazu.errors import BadInput, LayoutError, Unavailable
from tarazu.lustre import own_default_lmv
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.mdt import lmv
from tarazu.program import Program

log = logging.getLogger("tarazu.mdt")
CALL_S = 30.0
"""`mkdir` on an MDT that is away hangs until it is back."""
MOST = 100_000
"""Directories that are looked at below one."""
MODE = 0o755
"""Of a new directory: with `lfs mkdir -o`, whatever the umask is."""
_ACTIVE = re.compile(r"^(\d+): \S+ ACTIVE\s*$", re.MULTILINE)


class Lfs:
    """Calls that say by an error what went wrong."""

    def __init__(self) -> None:
        self.program = Program("lfs", "lfs", CALL_S)

    def __call__(self, *arguments: str) -> str:
        answer = self.program.call(arguments)
        if answer.status:
            lines = (answer.err or answer.out).strip().splitlines() or [f"status {answer.status}"]
            raise Unavailable(f"{answer.words}: {lines[0][:200]}")
        return answer.out

    def mdt_of(self, directory: str) -> int:
        """That it lies on. Raises Unavailable."""
        shown = self("getdirstripe", "-m", directory).strip()
        if not shown.isdecimal():
            raise Unavailable(
                f"lfs getdirstripe -m {directory}: expected the index of an MDT, found {shown[:80]!r}"
            )
        return int(shown)

    def need(self, mdt: int, directory: str) -> None:
        """Nothing is sent to an MDT that does not exist or is away. Raises Unavailable."""
        active = {int(index) for index in _ACTIVE.findall(self("mdts", directory))}
        if mdt not in active:
            listed = ", ".join(map(str, sorted(active))) or "none"
            raise Unavailable(f"MDT {mdt}: expected one that lfs mdts shows ACTIVE ({listed})")


class MdtLever(Lever):
    """A target is a directory, its value words of `lfs setdirstripe -D`; empty: none of its own."""

    name = "mdt"
    lasting = True
    apart = True
    seen_by = "time"

    def __init__(self) -> None:
        self.lfs = Lfs()
        self.program = self.lfs.program
        self.shown_of = own_default_lmv

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        found = []
        for path in dict.fromkeys((target, *parts)):
            try:
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode):
                    found.append(Part(path, lmv.words_of(self.shown_of(path)), _which(status)))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise Unavailable(f"{path}: {error.strerror}") from None
        return tuple(found)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        _check_path(target)
        for words in wanted.values():
            default = lmv.parsed(words)
            if default.below not in (None, default):  # by its copies we know what is ours
                raise BadInput(
                    f"mdt {target}", "a default that is copied as it is, or not at all (-X -1, -X 1)", words
                )

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        if not parts:
            raise Unavailable("no such directory")
        for part in parts:
            if part.value == lmv.UNKNOWN:
                raise Unavailable(f"{part.name}: has {lmv.UNKNOWN}, which could not be restored")
            if part.value and lmv.parsed(part.value).mdt != lmv.ANY_MDT:
                raise Unavailable(f"{part.name}: somebody has chosen its MDT: {part.value}")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        failed: Unavailable | None = None
        for path, words in wanted.items():
            if words and (mdt := lmv.parsed(words).mdt) != lmv.ANY_MDT:
                self.lfs.need(mdt, path)
            try:
                self.lfs("setdirstripe", *(("-D", *words.split()) if words else ("-d",)), path)
            except Unavailable as error:
                if type(error) is not Unavailable:
                    raise
                if os.path.isdir(path):  # else somebody has removed it
                    failed = failed or error
        if failed:
            raise failed

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return [
            f"lfs setdirstripe {f'-D {words}' if words else '-d'} {shlex.quote(path)}"
            for path, words in wanted.items()
        ]

    def same(self, value: str, step: str) -> bool:
        return lmv.is_same(value, step)

    def came(self, held: Held) -> tuple[Part, ...]:
        """Each with what it would have got of what was there before."""
        target = held.change.target
        now = self.read(target)
        if not now or (now[0].name, now[0].of) not in {(part.name, part.of) for part in held.before}:
            return ()  # another one
        ours = {words for step in held.steps for words in step.values() if words}
        copies = {_below(words) for words in ours} - {""}
        before = next(part.value for part in held.before if part.name == target)
        inherited = _below(before)
        if not copies - {inherited}:
            return ()
        paths = list(islice(below(target, held.first_s), MOST + 1))
        if len(paths) > MOST:
            log.warning("%s: more than %d directories below: the others keep what they have", target, MOST)
        known = {part.name for part in held.before}
        return tuple(
            part._replace(value=inherited)
            for part in self.read(target, paths[:MOST])
            if part.value in copies and part.name not in known
        )


class MkdirLever(Lever):
    """A target is a directory that is not there; its value `-i MDT` once it is, empty before."""

    name = "mkdir"
    lasting = True

    def __init__(self) -> None:
        self.lfs = Lfs()
        self.program = self.lfs.program
        self.shown_of = own_default_lmv

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        try:
            above = os.stat(os.path.dirname(target))
        except OSError:
            return ()
        try:
            status = os.lstat(target)
        except FileNotFoundError:
            return (Part(target, "", _which(above)),)
        except OSError as error:
            raise Unavailable(f"{target}: {error.strerror}") from None
        made = self._as_made(target, status, above)
        return (Part(target, made, _which(above)),)

    def _as_made(self, target: str, status: os.stat_result, above: os.stat_result) -> str:
        """`-i MDT`; or what makes it somebody's."""
        if not stat.S_ISDIR(status.st_mode):
            return "no directory"
        group = above.st_gid if above.st_mode & stat.S_ISGID else os.getegid()
        if (status.st_uid, status.st_gid) != (os.geteuid(), group):
            return f"owner {status.st_uid}:{status.st_gid}"
        if status.st_mode & 0o1777 != MODE:
            return f"mode {status.st_mode & 0o7777:o}"
        try:
            with os.scandir(target) as entries:
                if entry := next(entries, None):
                    return f"not empty: {entry.name[:40]!r}"
            own, of_above = (lmv.words_of(self.shown_of(path)) for path in (target, os.path.dirname(target)))
        except OSError as error:
            return str(error.strerror)
        mdt = self.lfs.mdt_of(target)
        if own and own not in (_below(of_above), *(f"-c {count} -i {mdt}" for count in (0, 1))):
            return f"a default of its own: {own}"  # but for that which `lfs mkdir` itself sets (since 2.15)
        return f"-i {mdt}"

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        _check_path(target)
        for words in wanted.values():
            if not re.fullmatch(r"-i [0-9]{1,4}", words):
                raise BadInput(f"mkdir {target}", "-i MDT", words)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        if not parts:
            raise Unavailable(f"{os.path.dirname(target)}: no such directory")
        if parts[0].value:
            raise Unavailable("it is there already")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        words = wanted[target]
        if not words:
            self._remove(target)
            return
        self.lfs.need(int(words.split()[1]), os.path.dirname(target))
        self.lfs("mkdir", *words.split(), "-o", f"{MODE:o}", target)

    def _remove(self, target: str) -> None:
        """Empty as it was seen a moment ago: what has come since stays."""
        try:
            os.rmdir(target)
        except FileNotFoundError:
            return
        except OSError as error:
            why = "not empty" if error.errno in (errno.ENOTEMPTY, errno.EEXIST) else error.strerror
            raise Unavailable(f"rmdir {target}: {why}") from None

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        made = (f"lfs mkdir {words} -o {MODE:o} {{}}" if words else "rmdir {}" for words in wanted.values())
        return [command.format(shlex.quote(path)) for path, command in zip(wanted, made, strict=True)]


def _below(words: str) -> str:
    """What a new subdirectory gets a copy of."""
    try:
        return str((lmv.parsed(words).below if words else None) or "")
    except LayoutError:
        return lmv.UNKNOWN


def _which(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _check_path(target: str) -> None:
    """Raises BadInput."""
    if not target.startswith("/") or os.path.normpath(target) != target or target == "/":
        raise BadInput("directory", "an absolute path without . and ..", target)


def below(path: str, since_s: float) -> Iterator[str]:
    """Directories that were made or changed below since (Unix time); what is older cannot have got a copy."""
    # It may have been a clock that was ahead.
    oldest_s = since_s - 1 if since_s <= time.time() else 0.0
    todo = [path]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                        if entry.stat(follow_symlinks=False).st_ctime >= oldest_s:
                            yield entry.path
        except OSError:
            continue  # gone meanwhile, or another user's
