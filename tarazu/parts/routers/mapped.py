"""The mapping of nodes to routers that mdsd follows: the file's newest content, and what it says of each way."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tarazu import nids
from tarazu.errors import StoreError
from tarazu.nids import Nid
from tarazu.parts.routers import mapping_file
from tarazu.parts.routers.mapping_file import InForce
from tarazu.parts.routers.udsp import Rule
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

LOOK_S = 5.0
"""So often it is looked whether the file is another one."""


class Followed:
    """`look` is called by the loop, `read` by the thread that plans, and not while another `read` is under way."""

    def __init__(self, path: str) -> None:
        """`path`: empty: no mapping is followed."""
        self.path = Path(path) if path else None
        self.problem = ""
        """Why the file cannot be taken; there is no mapping then."""
        self._mark: tuple[int, ...] | None = None
        self._read_mark: tuple[int, ...] | None = None
        self._found: InForce | None = None
        self._look_at = 0.0
        self._said = SaidOnce(log)

    def look(self, now: float) -> bool:
        """Whether there is something to read."""
        if self.path is not None and now >= self._look_at:
            self._look_at = now + LOOK_S
            try:
                inode = self.path.stat()
                self._mark = inode.st_ino, inode.st_size, inode.st_mtime_ns
            except OSError:
                self._mark = None
        return self._mark != self._read_mark

    def read(self) -> InForce | None:
        """What is to be followed now."""
        if self.path is None:
            return None
        mark = self._mark
        if mark != self._read_mark:
            self.problem = ""
            try:
                self._found = mapping_file.read(self.path)
            except StoreError as error:
                self._found, self.problem = None, str(error)
                self._said.warning(f"{error}: no mapping is followed")
            self._read_mark = mark
        return self._found


def rules_of(
    mapping: InForce | None,
    routers: Mapping[tuple[str, str], tuple[Nid, ...]],
    taken: Mapping[tuple[str, str], Iterable[Rule]],
) -> dict[tuple[str, str], tuple[Rule, ...]]:
    """Way → rules by routers that are up, for nodes that no running job's rule (`taken`) is for.

    A way is (the servers' network, the nodes' network).
    """
    if mapping is None:
        return {}
    by_way = {}
    for way, up in routers.items():
        of_way = [
            rule
            for rule in mapping.rules
            if (rule.rte.net, rule.dst.net) == way and any(rule.rte.has(router) for router in up)
        ]
        others = frozenset(nid for rule in taken.get(way, ()) for nid in rule.dst.nids())
        by_way[way] = without(of_way, others)
    return by_way


def without(whole: Sequence[Rule], taken: frozenset[Nid]) -> tuple[Rule, ...]:
    """The rules without nodes that have others; rules that have none of these stay as they are."""
    if not taken:
        return tuple(whole)
    kept: list[Rule] = []
    for rule in whole:
        left = [nid for nid in rule.dst.nids() if nid not in taken]
        if len(left) < rule.dst.size:
            kept += [Rule(dst, rule.rte) for dst in nids.fold(left)]
        else:
            kept.append(rule)
    return tuple(kept)
