"""What `tarazu status` says of spatial bursts on this node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tarazu.config import Settings
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.settings import directory_of
from tarazu.units import counted, human_bytes

OLD_S = 30.0
"""A status that is written each five seconds."""


def told(settings: Settings) -> dict[str, Any]:
    """As the daemon wrote it last (`written_s`); empty: it never has, or it may not be read."""
    return BurstsDirectory(directory_of(settings)).told()


def lines(status: Mapping[str, Any], now_s: float | None = None) -> list[str]:
    """The same as lines."""
    age_s = (time.time() if now_s is None else now_s) - status["written_s"]
    if age_s < -OLD_S:
        return [f"burstd {status['name']}: silent since its clock was {-age_s:.0f} s ahead"]
    if age_s > OLD_S:
        return [f"burstd {status['name']}: silent for {age_s:.0f} s"]
    traffic, history, slurm = status["traffic"], status["history"], status["slurm"]
    lines = [
        f"burstd {status['name']}: up {status['uptime_s']:.0f} s, {'with' if status['keys'] else 'WITHOUT'} keys, "
        f"{counted(traffic['senders'], 'sender')}, {counted(traffic['nodes'], 'node')} "
        f"({counted(traffic['unknown_nids'], 'NID')} unknown), "
        f"{counted(history['jobs'], 'job')} ({history['running']} run), "
        f"{counted(history['applications'], 'application')} known, "
        f"{human_bytes(history['bytes'])} of traffic"
    ]
    if slurm["problem"]:
        lines.append(f"  jobs unknown: {slurm['problem']}")
    if history["trouble"]:
        lines.append(f"  not kept: {history['trouble']}")
    if history["lost_rows"]:
        lines.append(f"  {counted(history['lost_rows'], 'row')} of traffic lost: what could not be written")
    return lines
