"""The two sides of a file system: targets and their state, what can be chosen at creation, what refuses.

`lustre.py` and `ceph.py` answer the same questions for a leader, which holds one of them for each file system that is
mounted on its node (`of`). What a server's node knows is `tarazu.stats` on Lustre, `pools.py` on CephFS; from a report
on both are the same: views, speeds, verdicts, allocation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from tarazu.filesystem import ceph, lustre
from tarazu.model import Layout
from tarazu.stats.client import FileSystem, Mount


class Side(Protocol):
    """What a leader asks of a kind of file system."""

    KIND: str
    PLACE_S: float
    """Seconds that the making of a file takes longer where it is placed, in a file system that makes one after another.
    """

    def file_system(self, fs_name: str, root: str) -> FileSystem:
        """What this client knows of it, without asking servers."""

    def directory_default(self, path: str) -> bytes:
        """A directory's default layout in the form of `lustre.lov`; empty where it has none. Raises OSError."""

    def own_default(self, fs: FileSystem) -> bytes:
        """What a file gets below directories without any default, in the same form; empty where that is not known."""

    def refusal(self, layout: Layout) -> str:
        """Why the site's own library refuses a layout; empty: it does not, or there is none."""

    def not_there(self, fs: FileSystem, targets: Collection[int]) -> list[int]:
        """Those that a plan names and the client knows not to exist."""

    def refused_targets(
        self, mounts: Sequence[Mount], keys: Sequence[str], targets: Collection[int]
    ) -> dict[int, str]:
        """Targets in which this user cannot write → why. `keys`: files that are planned, below which to try it."""


def of(mounts: Sequence[Mount]) -> Side:
    """That of one file system's mounts."""
    return of_kind(mounts[0].kind)


def of_kind(kind: str) -> Side:
    """That of a kind of mount; Lustre's for one that is not known."""
    side: Side = ceph if kind == ceph.KIND else lustre
    return side
