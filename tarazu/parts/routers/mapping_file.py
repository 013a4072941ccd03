"""The mapping that is in force: a file that `tarazu change bursts remap --apply` writes, and mdsd follows.

JSON; whole or not there at all, also after a crash. mdsd takes away what it had set when the file is gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.config import Settings
from tarazu.errors import BadInput, StoreError
from tarazu.malformed import MALFORMED, described
from tarazu.parts.routers import udsp
from tarazu.parts.routers.udsp import Rule

DIRECTORY = "tarazu-mapping"
"""Below `state.directory`: the file, and what `tarazu change bursts remap` notes of it."""
FORMAT = 1
WHAT = "a mapping that `tarazu change bursts remap --apply` has written"
MAX_BYTES = 4 << 20
MAX_RULES = 4_096
MAX_NODES = 200_000


class InForce(msgspec.Struct, frozen=True):
    how: str
    """Name of the mapping: `folded`."""
    made: str
    """When, in UTC."""
    uid: int
    """By whom."""
    rules: tuple[Rule, ...]

    @property
    def nodes(self) -> int:
        """NIDs, those of each network of servers counted."""
        return sum(rule.dst.size for rule in self.rules)


class _File(msgspec.Struct, frozen=True):
    format: int
    how: str
    made: str
    uid: int
    rules: tuple[tuple[str, str], ...]
    """(dst, rte)."""


def path_of(settings: Settings) -> str:
    """Where it stands on mdsd's node."""
    return f"{settings.state.directory}/{DIRECTORY}/mapping.json"


def write(path: Path, how: str, rules: Iterable[Rule]) -> None:
    """On disk when this returns. Raises StoreError, and BadInput for rules that `read` would not take; what was there
    before is then still there.
    """
    rules = tuple(rules)
    _check(rules)
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    file = _File(FORMAT, how, made, os.getuid(), tuple((str(rule.dst), str(rule.rte)) for rule in rules))
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.*.part"):
            left.unlink(missing_ok=True)  # by one that was killed
        durable.replace(path, msgspec.json.format(msgspec.json.encode(file)) + b"\n", sync_name=True)
    except OSError as error:
        raise StoreError(str(path), "a file that can be written", error.strerror) from None


def remove(path: Path) -> bool:
    """Needs no space on the disk. False: there was none. Raises StoreError."""
    try:
        path.unlink()
        durable.sync_directory(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(str(path), "a file that can be removed", error.strerror) from None
    return True


def text_of(how: str, rules: Iterable[Rule]) -> str:
    """A mapping in one line: `folded: --dst … --rte …; --dst … --rte …`."""
    return f"{how}: {'; '.join(map(str, rules))}"


def parsed(text: str) -> tuple[str, tuple[Rule, ...]]:
    """(its name, its rules), of such a line. Raises BadInput, also for what `read` would not take."""
    how, _, rest = text.partition(": ")
    rules = tuple(map(udsp.parsed, rest.split("; "))) if rest else ()
    _check(rules)
    return how, rules


def read(path: Path) -> InForce | None:
    """None where there is none. Raises StoreError for one that tarazu has not written."""
    try:
        with open(path, "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(str(path), "a readable file", error.strerror) from None
    if len(data) > MAX_BYTES:
        raise StoreError(str(path), f"a file of at most {MAX_BYTES} bytes", "a longer one")
    try:
        file = msgspec.json.decode(data, type=_File)
    except MALFORMED as error:
        raise StoreError(str(path), WHAT, str(error)) from None
    if file.format != FORMAT:
        raise StoreError(str(path), f"format {FORMAT}", file.format)
    try:
        rules = tuple(udsp.rule(dst, rte) for dst, rte in file.rules[: MAX_RULES + 1])
        _check(rules)
    except BadInput as error:
        raise StoreError(str(path), WHAT, str(error)) from None
    return InForce(file.how, file.made, file.uid, rules)


def _check(rules: Sequence[Rule]) -> None:
    """Each node once for each network of servers: of two rules for a node Lustre follows one. Raises BadInput."""
    if len(rules) > MAX_RULES:
        raise BadInput("mapping", f"at most {MAX_RULES} rules", len(rules))
    if sum(rule.dst.size for rule in rules) > MAX_NODES:
        raise BadInput("mapping", f"at most {MAX_NODES} nodes", "more")
    seen = set()
    for rule in rules:
        for nid in rule.dst.nids():
            if (nid, rule.rte.net) in seen:
                raise BadInput("mapping", "each node once", f"{nid} twice")
            seen.add((nid, rule.rte.net))


described(_File)
