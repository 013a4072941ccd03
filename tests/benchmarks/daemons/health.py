"""3,600 OSTs: the MDS's connections to them looked at; who of a million promised stripes stands on some of them."""

from __future__ import annotations

import random
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from tarazu.allocate.ledger import Ledger
from tarazu.daemons.mdsd.health import LONGEST_LOOK_S, LOOK_S
from tarazu.stats.osp import Osps
from tarazu.stripes import Stripes
from tests.benchmarks.figure import Figure

OSTS = 3600
STRIPES_A_FILE, FILES_A_STEP = 8, 125
STATE = "current_state: FULL\nstate_history:\n" + " - [ 1795165909, CONNECTING ]\n" * 16


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth of the OSTs and stripes."""
    osts, steps = (OSTS // 10, 100) if short else (OSTS, 1000)
    figures = [
        Figure("OSTs", osts, ""),
        Figure("promised stripes", steps * FILES_A_STEP * STRIPES_A_FILE, ""),
    ]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as root:
        write(Path(root), osts, ("state",))
        states_s = least_cpu_s(Osps(root).look)
        write(Path(root), osts, ("active", "max_create_count", "prealloc_status"))
        all_s = least_cpu_s(Osps(root).look)
    for what, look_s in (("states", states_s), ("states, and the other parameters in turn", all_s)):
        every_s = min(max(LOOK_S, 100 * look_s), LONGEST_LOOK_S)
        figures += [
            Figure(f"a look at all {what}", 1000 * look_s, "ms"),
            Figure("so often while anything is promised", every_s, "s", LONGEST_LOOK_S),
            Figure("share of a core", 100 * look_s / every_s, "%", 1.5),
        ]
    ledger = promised(osts, steps)
    for dead in (1, 8, 80):
        scan_s = least_cpu_s(lambda dead=dead: ledger.standing_on("fs", range(dead)))  # type: ignore[misc]
        figures.append(Figure(f"who stands on {dead} of them", 1000 * scan_s, "ms", 500.0))
    return figures


def write(root: Path, osts: int, parameters: tuple[str, ...]) -> None:
    for index in range(osts):
        for name in parameters:
            where = "sys/kernel/debug/lustre" if name == "state" else "sys/fs/lustre"
            path = root / where / "osp" / f"fs-OST{index:04x}-osc-MDT0000" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text({"state": STATE, "prealloc_status": "0\n"}.get(name, "1\n"))


def promised(osts: int, steps: int) -> Ledger:
    ledger, chance, files = Ledger(), random.Random(1), FILES_A_STEP
    for step in range(steps):
        indices = array("H", (chance.randrange(osts) for _ in range(files * STRIPES_A_FILE)))
        sizes = array("Q", [1 << 20]) * len(indices)
        starts = array("I", range(0, len(indices) + 1, STRIPES_A_FILE))
        ledger.promise(f"step{step}", "fs", 1e9, Stripes(indices, sizes, starts))
    return ledger


def least_cpu_s(what: Callable[[], object], times: int = 5) -> float:
    """Processor time, the least of some: others use this machine too."""
    what()
    found = []
    for _ in range(times):
        before = time.thread_time()
        what()
        found.append(time.thread_time() - before)
    return min(found)
