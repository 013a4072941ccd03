"""The system view as it truly is at this moment: what a policy looks at where statistics are not simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.model import Oss, Ost, SystemView
from tarazu.sim.model.links import Floats
from tarazu.sim.model.ost import FILES, Osts

FS_NAME = "simfs"


def view_of(
    osts: Osts,
    servers: Sequence[str],
    now: float,
    promised: Floats | None = None,
    loads: Sequence[Oss] = (),
) -> SystemView:
    """Space with what running writes will take, speeds as they are; `promised`: bytes by OST; `loads` of servers."""
    spec = osts.spec
    owed = (np.zeros(osts.count) if promised is None else np.maximum(promised, 0)).astype(np.int64).tolist()
    free = (osts.total_bytes - osts.used_bytes - osts.claimed).clip(0).tolist()
    usual = float(np.median(osts.base_speed[osts.base_speed > 0]))
    per_oss = spec.osts_per_oss
    return SystemView(
        FS_NAME,
        now,
        tuple(
            Ost(
                index=j,
                oss=servers[j // per_oss],
                total_bytes=spec.ost_bytes,
                free_bytes=free[j],
                avail_bytes=free[j],
                files_free=FILES,
                promised_bytes=owed[j],
                write_bytes_per_s=spec.write.peak_bytes_per_s * speed,
                relative_speed=speed / usual,
                speed_source="simulated",
                peak_bytes_per_s=spec.write.peak_bytes_per_s * speed or None,
                active=active,
            )
            for j, (speed, active) in enumerate(zip(osts.speed.tolist(), osts.active.tolist()))
        ),
        tuple(_linked(oss, spec.oss_link_bytes_per_s) for oss in loads or map(Oss, servers)),
    )


def _linked(oss: Oss, bytes_per_s: float) -> Oss:
    return msgspec.structs.replace(oss, link_bytes_per_s=bytes_per_s) if math.isfinite(bytes_per_s) else oss
