"""Who may talk to mdsd, and for whom: the public keys of a directory, and the lists beside them.

    client.pub, client-login1.pub    admit a clientd; oss.pub, oss-rack2.pub an ossd; server.pub the other mdsd
    client-login1.uids               the only uids that this key may ask for: `1000-1999, 2500`, `*`
    oss-rack2.targets                the only targets that this key may report: `scratch-OST0000, scratch-OST01*`

A list has any number of lines; `#` begins a comment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import WireError
from tarazu.wire import keys
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.wire")

LOOK_S = 1.0
LOOK_SHARE = 50
"""The directory is looked at every `LOOK_S`, but no more than a fiftieth of the time: with 10,000 keys every 2 s."""
SETTLED_S = 2.0
"""A file younger than this may change again without its time changing: it is read again."""
MAX_FILE_BYTES = 1 << 20
MAX_UID = 2**32 - 1
NONE: tuple[tuple[int, int], ...] = ()

_PUBLIC = re.compile(rf"({'|'.join(keys.ROLES)})(-.+)?\.pub")


class Admission(NamedTuple):
    """One public key that is let in."""

    name: str
    """Of its file, without `.pub`."""
    role: str
    public: bytes
    uids: tuple[tuple[int, int], ...] | None = None
    """(first, last) of each range; None: there is no list."""
    targets: tuple[str, ...] | None = None
    """Patterns of target names; None: there is no list."""

    def may_ask_for(self, uid: int, required: bool = False) -> bool:
        """`required`: without a list it may ask for nobody."""
        if self.uids is None:
            return not required
        return any(first <= uid <= last for first, last in self.uids)

    def may_report(self, target: str) -> bool:
        return self.targets is None or any(fnmatchcase(target, pattern) for pattern in self.targets)


class Admitted:
    """The keys of one directory: looked at again every second, read again where they changed.

    From any thread. What is malformed admits nobody, and is said once; the others stay admitted. While the
    directory itself cannot be read, what was last read of it holds.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.changes = 0
        """Counts up whenever somebody was added, removed or changed."""
        self._due = 0.0
        self._read: dict[str, tuple[tuple[int, ...], Admission]] = {}
        self._admitted: dict[tuple[str, bytes], Admission] = {}
        self._said = SaidOnce(log)
        self._lock = threading.Lock()
        self.look()

    def find(self, role: str, public: bytes) -> Admission | None:
        """Who holds this key (Z85), if he is admitted as `role`, as of the last `look`."""
        return self._admitted.get((role, public))

    def find_any(self, roles: Sequence[str], public: bytes) -> Admission | None:
        """The same for one of several roles."""
        return next((admitted for role in roles if (admitted := self.find(role, public))), None)

    def look(self) -> None:
        """Look at the directory, if it is time to."""
        if time.monotonic() < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            begin = time.monotonic()
            self._scan()
            end = time.monotonic()
            self._due = end + max(LOOK_S, LOOK_SHARE * (end - begin))
        finally:
            self._lock.release()

    def _scan(self) -> None:
        try:
            with os.scandir(self.directory) as entries:
                found_now = {
                    e.name: _stat(e)
                    for e in entries
                    if e.name.endswith((".pub", ".uids", ".targets")) and not e.name.startswith(".")
                }
        except OSError as error:
            self._said.warning(f"{self.directory}: {error.strerror}: the keys known so far stay admitted")
            return
        seen = {name: each for name, each in found_now.items() if each}
        read: dict[str, tuple[tuple[int, ...], Admission]] = {}
        for name in sorted(seen):
            if not (matched := _PUBLIC.fullmatch(name)):
                continue
            stem, beside = name.removesuffix(".pub"), (".uids", ".targets")
            stats = [seen[file] for file in (name, *(stem + end for end in beside)) if file in seen]
            # A list that has just come may take the place of one that has just gone: which it is counts too.
            mark = (*(stem + end in seen for end in beside), *(n for s in stats for n in _mark(s)))
            known = self._read.get(name)
            settled = abs(time.time() - max(s.st_mtime for s in stats)) > SETTLED_S
            if known and known[0] == mark and settled:
                read[name] = known
                continue
            try:
                read[name] = (mark, admission(self.directory, stem, matched[1]))
            except WireError as error:
                self._said.warning(f"{error}: this key is not admitted")
        self._read = read
        self._take([admitted for _, admitted in read.values()])

    def _take(self, found: list[Admission]) -> None:
        admitted: dict[tuple[str, bytes], Admission] = {}
        for one in found:
            other = admitted.setdefault((one.role, one.public), one)
            if other is not one:
                # Which of their lists is meant? Neither: a key that is meant to be limited must not become free.
                self._said.warning(f"{one.name}.pub is the key of {other.name}.pub: neither is admitted")
                admitted[one.role, one.public] = other._replace(uids=NONE, targets=())
        if admitted != self._admitted:
            self._admitted = admitted
            self.changes += 1


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None for a file that has just gone. A link to nothing is there, and malformed: others do not depend on it."""
    for follow in (True, False):
        with contextlib.suppress(FileNotFoundError):
            return entry.stat(follow_symlinks=follow)
    return None


def _mark(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


def admission(directory: Path, stem: str, role: str) -> Admission:
    """What `<stem>.pub` and the lists beside it say. Raises WireError naming file and line."""
    path = directory / f"{stem}.pub"
    key = keys.load(path)
    if key.role != role:
        raise WireError(str(path), f"a public key of role {role}", f"role {key.role}")
    if key.secret is not None:
        raise WireError(str(path), "a public key", "a secret one")
    _check_writers(path)
    uids = _words(directory / f"{stem}.uids")
    targets = _words(directory / f"{stem}.targets")
    return Admission(
        stem,
        role,
        key.public,
        None if uids is None else tuple(uid_range(where, word) for where, word in uids),
        None if targets is None else tuple(word for _, word in targets),
    )


def uid_range(where: str, word: str) -> tuple[int, int]:
    """First and last uid of one word of a list. Raises WireError."""
    if word == "*":
        return 0, MAX_UID
    matched = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", word, re.ASCII)
    first = int(matched[1]) if matched else 0
    last = int(matched[2] or matched[1]) if matched else -1
    if not first <= last <= MAX_UID:
        raise WireError(where, "uids such as 1000-1999, 2500 or *", word[:40])
    return first, last


def _words(path: Path) -> list[tuple[str, str]] | None:
    """(where, word) of a list; None where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        if path.is_symlink():  # meant to be limited
            raise WireError(str(path), "a readable list", "a link to nothing") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise WireError(str(path), "a readable list in UTF-8", getattr(error, "strerror", "bytes")) from None
    if len(text) > MAX_FILE_BYTES:
        raise WireError(str(path), f"a list of at most {MAX_FILE_BYTES} bytes", "a longer one")
    _check_writers(path)
    return [
        (f"{path}:{number}", word)
        for number, line in enumerate(text.splitlines(), 1)
        for word in re.split(r"[\s,]+", line.partition("#")[0])
        if word
    ]


def _check_writers(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o002:
        raise WireError(str(path), "a file that not everybody can write", f"mode {mode:04o}")


def check(directory: str | Path) -> None:
    """Raises WireError for the first file of the directory that is malformed."""
    folder = Path(directory)
    for path in sorted(folder.glob("*.pub")):
        if matched := _PUBLIC.fullmatch(path.name):
            admission(folder, path.stem, matched[1])
