"""What a node is, by what Lustre shows of it."""

from __future__ import annotations

from pathlib import Path

from tarazu.stats.params import find
from tarazu.tune.exchange import Kind

_SHOWN: tuple[tuple[Kind, str], ...] = (("oss", "obdfilter.*.stats"), ("client", "llite.*.stats"))


def kind_of(root: str | Path) -> Kind:
    """An OSS serves targets, a client mounts a file system; what does neither routes."""
    for kind, parameter in _SHOWN:
        if find(Path(root), parameter):
            return kind
    return "router"
