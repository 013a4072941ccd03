"""Whether the MDTs on mdsd's node reach those on other nodes."""

from __future__ import annotations

import time
from pathlib import Path

from tarazu.stats.osp import HEALTHY, REFRESH_S, Target, beginning, parse_state
from tarazu.stats.params import find, mdt_connected


class Connections:
    """Elsewhere there are none, and no problems."""

    def __init__(self, root: str | Path) -> None:
        self._root = root
        self._files: list[tuple[Target, str, str]] = []
        """Of one MDT's connection to another: `state`, and `active`."""
        self._listed_s: float | None = None

    def look(self) -> dict[Target, str]:
        """(file system, MDT index) → state of a connection to it that is not up, or `inactive`."""
        now = time.monotonic()
        if self._listed_s is None or now - self._listed_s >= REFRESH_S:
            self._list()
            self._listed_s = now
        amiss = {}
        for target, state_path, active_path in self._files:
            state = parse_state(beginning(state_path).decode("ascii", "replace"))
            if beginning(active_path).strip() == b"0":
                amiss[target] = "inactive"
            elif state and state not in HEALTHY:
                amiss[target] = f"dead: {state}"
        return amiss

    def _list(self) -> None:
        mdts = {
            device: path for device, path in find(self._root, "osp.*.state").items() if mdt_connected(device)
        }
        actives = find(self._root, "osp.*.active") if mdts else {}
        self._files = [
            (target, str(path), str(actives.get(device, "")))
            for device, path in mdts.items()
            if (target := mdt_connected(device))
        ]
