"""What clientd sees of the file systems mounted on its node, for an mdsd that does not run on the MDS."""

from __future__ import annotations

import os
import time

from tarazu.errors import TarazuError
from tarazu.stats import client
from tarazu.wire.messages import MAX_ID_CHARACTERS, MAX_MOUNTED, MAX_POOLS, Pools

KEEP_S = 30.0
"""Pools are read again after this long."""


class ClientPools:
    """The pools of the mounted file systems, below $TARAZU_ROOT. It is clientd who reads them, not its users."""

    def __init__(self, root: str | None = None) -> None:
        self.root = root or os.environ.get("TARAZU_ROOT", "/")
        self._kept: tuple[float, dict[str, Pools]] = (-KEEP_S, {})

    def __call__(self) -> dict[str, Pools]:
        """File system → pool → OST indices; those without pools are left out. Never raises."""
        now = time.monotonic()
        if now - self._kept[0] >= KEEP_S:
            self._kept = (now, _read(self.root))
        return self._kept[1]


def _read(root: str) -> dict[str, Pools]:
    try:
        names = sorted({mount.fs_name for mount in client.mounts(root)})[:MAX_MOUNTED]
        pools = {name: client.file_system(name, root).pools for name in names}
    except (TarazuError, OSError):
        return {}
    return {
        fs_name: {
            pool: tuple(sorted(members))
            for pool, members in sorted(of_fs.items())[:MAX_POOLS]
            if len(pool) <= MAX_ID_CHARACTERS
        }
        for fs_name, of_fs in pools.items()
        if of_fs and len(fs_name) <= MAX_ID_CHARACTERS
    }
