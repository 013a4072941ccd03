"""For `tarazu status`: tarazu-burstd on this node, as its file tells."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tarazu.units import human_bytes

OLD_S = 30.0
"""A status that is written each five seconds."""


def lines(status: Mapping[str, Any], now_s: float | None = None) -> list[str]:
    """Of `tarazu.daemons.burstd.here.status`; none where there is no daemon."""
    if not status:
        return []
    age_s = (time.time() if now_s is None else now_s) - status["written_s"]
    if age_s < -OLD_S:
        return [f"burstd {status['name']}: silent since its clock was {-age_s:.0f} s ahead"]
    if age_s > OLD_S:
        return [f"burstd {status['name']}: silent for {age_s:.0f} s"]
    traffic, history, slurm = status["traffic"], status["history"], status["slurm"]
    found = [
        f"burstd {status['name']}: up {status['uptime_s']:.0f} s, {'with' if status['keys'] else 'WITHOUT'} keys, "
        f"{traffic['senders']} senders, {traffic['nodes']} nodes ({traffic['unknown_nids']} NIDs unknown), "
        f"{history['jobs']} jobs ({history['running']} run), {history['applications']} applications known, "
        f"{human_bytes(history['bytes'])} of traffic"
    ]
    if slurm["problem"]:
        found.append(f"  jobs are not known: {slurm['problem']}")
    if history["trouble"]:
        found.append(f"  not kept: {history['trouble']}")
    if history["lost_rows"]:
        found.append(f"  {history['lost_rows']} rows of traffic were lost: they could not be written")
    return found
