"""`tarazu whatif` on a log of 65,536 ranks, a file each, on 2,000 OSTs: seconds, with start-up; 60 are allowed.

.venv/bin/python -m tests.benchmarks.sim.whatif_ranks
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tarazu.units import MIB
from tests.parts.whatif.logs import job

RANKS, OSTS, ALLOWED_S = 65_536, 2_000, 60.0


def main() -> int:
    rng = np.random.default_rng(1)
    sizes = (rng.uniform(0.5, 1.5, RANKS) * 64 * MIB).astype(np.int64)
    where = [[int(ost)] for ost in rng.integers(0, OSTS, RANKS)]
    with tempfile.TemporaryDirectory() as folder:
        log = job(Path(folder) / "log.darshan", sizes, where, ends=11.0 + rng.uniform(0, 2, RANKS))
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "tarazu", "whatif", str(log)], check=True)
        took_s = time.monotonic() - began
    cpu = os.times()
    print(f"{took_s:.1f} s, {cpu.children_user + cpu.children_system:.1f} s of CPU")
    return 0 if took_s <= ALLOWED_S else 1


if __name__ == "__main__":
    sys.exit(main())
