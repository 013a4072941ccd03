"""The mapping of nodes to routers that mdsd follows: the file's newest content, and what it says of each way."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from tarazu.errors import StoreError
from tarazu.forwarding.mapping import mapping_file
from tarazu.forwarding.mapping.mapping_file import InForce
from tarazu.forwarding.mapping.rules import without
from tarazu.forwarding.routers.udsp import Rule
from tarazu.nids import Nid
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
