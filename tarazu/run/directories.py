"""The directories of one job step on its leader's node: one of spools, one of maps, both removed at its end."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path

from tarazu.config import Run
from tarazu.errors import TarazuError
from tarazu.run import leftovers


class Directories:
    """Named when the step is, made before its program starts."""

    def __init__(self, run: Run, run_id: str) -> None:
        self.spool = f"{run.spool_dir.replace('{uid}', str(os.getuid()))}/{run_id}"
        """As every node has its own, with `%h` for the host; empty when nothing can be recorded."""
        self.spool_here = Path(self.spool.replace("%h", socket.gethostname()))
        """This node's."""
        self.all_maps = Path(run.map_dir).expanduser()
        self.map = self.all_maps / run_id
        self._lease = leftovers.Lease()

    def make_spool(self) -> None:
        """The directory of this node's spools: the user's own, or nothing is recorded. Raises TarazuError, OSError."""
        spool, self.spool = self.spool, ""
        self.spool_here.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.spool_here.mkdir(mode=0o700, exist_ok=True)
        run, parent = self.spool_here.lstat(), self.spool_here.parent.lstat()
        ours = run.st_uid == os.geteuid() and not run.st_mode & 0o022
        kept = parent.st_uid in (0, os.geteuid()) and not parent.st_mode & 0o022
        if not (ours and (kept or parent.st_mode & stat.S_ISVTX)):
            raise TarazuError(f"{self.spool_here}: expected a directory that nobody else can change")
        self._lease.take(self.spool_here)
        self.spool = spool

    def make_map(self, *, beside_spools: bool) -> None:
        """The directory of the maps; beside the spools where these go to nodes that share neither. Raises OSError."""
        if beside_spools:
            self.map = self.spool_here / "map"
        self.map.mkdir(parents=True, mode=0o700)
        self._lease.take(self.map)

    def sweep(self) -> None:
        """Remove what killed leaders left behind."""
        leftovers.sweep(self.all_maps, self.spool_here.parent)

    def remove(self) -> None:
        self._lease.release()
        # Twice: a thread that was left behind may just have written another map.
        for directory in (self.map, self.spool_here, self.map):
            shutil.rmtree(directory, ignore_errors=True)
