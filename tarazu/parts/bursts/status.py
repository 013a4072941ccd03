"""What `tarazu status` and `tarazu doctor` say of spatial bursts on this node."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from tarazu.config import Settings
from tarazu.doctor.lustre import job_id_text
from tarazu.doctor.node import Finding, Node, fail
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.settings import directory_of, options_of
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


def look(node: Node) -> Iterator[Finding]:
    """Do job ids name the node, where traffic comes from them?"""
    wanted = options_of(node.settings).job_ids if node.roles & {"client", "launch"} else ""
    name = job_id_text(node, "jobid_name")
    if wanted and name and name != wanted:
        mend = f"lctl set_param -P jobid_name='{wanted}', or part.bursts.job_ids = '{name}'"
        yield fail("jobid_name", f"{name!r}, but part.bursts.job_ids is {wanted!r}", mend)
