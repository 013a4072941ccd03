"""Whether a target of this node recovers: then nothing is changed but what mends.

`obdfilter.*.recovery_status`, `mdt.*.recovery_status` begin with `status: RECOVERING` (or WAITING_FOR_CLIENTS) while
clients reconnect after a failover, COMPLETE or INACTIVE else (lustre/obdclass/lprocfs_status_server.c).
"""

from __future__ import annotations

from pathlib import Path

from tarazu.stats import reading
from tarazu.stats.params import find

PARAMETERS = ("obdfilter.*.recovery_status", "mdt.*.recovery_status")
RECOVERING = ("RECOVERING", "WAITING", "WAITING_FOR_CLIENTS")


def recovering(root: str | Path) -> str:
    """Why nothing may be changed now: `scratch-OST0003 is RECOVERING`; empty: nothing of this node recovers."""
    for parameter in PARAMETERS:
        for device, path in sorted(find(Path(root), parameter).items()):
            try:
                words = reading.text(path).split(maxsplit=2)
            except (OSError, ValueError):
                continue  # a target that is just going
            if words[:1] == ["status:"] and words[1:2] and words[1] in RECOVERING:
                return f"{device} is {words[1]}"
    return ""
