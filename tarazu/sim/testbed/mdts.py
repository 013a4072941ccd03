"""What can be changed of a testbed's MDTs while it is up."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tarazu.errors import BadInput
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.library import MDT_FLAGS
from tarazu.sim.testbed.mdt_server import mdt_places
from tarazu.units import GIB

MDT_BYTES, MDT_FILES = 10 * GIB, 1 << 20
"""Size and number of inodes of each."""


class MdtControl(Directory):
    """The part of a `Testbed` that is about MDTs."""

    def set_mdt(
        self,
        index: int,
        *,
        slower: float | None = None,
        filled: float | None = None,
        inodes_used: float | None = None,
        **flags: bool | None,
    ) -> None:
        """Changes one MDT: how many times `slower` it is, the share of its bytes (`filled`) and of its inodes
        (`inodes_used`) that was used before, 0-1, and `inactive` (deactivated on the clients), `no_create`, `away` (a
        power cut: what has to reach it waits).

        Raises BadInput for an index or a flag that does not exist, and for values that make no sense.
        """
        if not 0 <= index < self.config.mdts:
            raise BadInput("set_mdt", f"an MDT index below {self.config.mdts}", index)
        changes = {name: on for name, on in flags.items() if on is not None}
        if unknown := set(changes) - set(MDT_FLAGS):
            raise BadInput("set_mdt", f"flags of {', '.join(MDT_FLAGS)}", sorted(unknown))
        if slower is not None and slower <= 0:
            raise BadInput("set_mdt", "a factor above 0", slower)
        for share, whole, base in ((filled, "total", "base"), (inodes_used, "files_total", "files_base")):
            if share is not None and not 0 <= share <= 1:
                raise BadInput("set_mdt", "a share between 0 and 1", share)
            if share is not None:
                self.mds.set_mdt(base, round(share * self.mds.get_mdt(whole, index)), index)
        before = self.mds.mdt_flags(index)["away"]
        if before and changes.get("away") is False:
            tunables.make_mdt(self.mds_root, self.fs_name, index)  # what was set there is gone
        self.mds.set_mdt_flags(index, changes)
        if not before and changes.get("away"):
            for place in mdt_places(self.fs_name, index):
                shutil.rmtree(self.mds_root / place, ignore_errors=True)
        if slower is not None:
            settings = self._settings()
            settings.mdts[index].slower = float(slower)
            self._save(settings)

    def set_mdt_wait(self, seconds: float) -> None:
        """How long calls wait for an MDT that is away before they fail with EIO; 0: until it is back, as clients do."""
        self.mds.set_mdt("wait_ms", round(seconds * 1000))

    def mdt(self, path: Path | str) -> int:
        """The MDT of a directory, or of a file's directory; `path` below the mount or absolute. Raises TarazuError."""
        return self.mds.mdt_of(Path(os.path.realpath(self.mount / path)))
