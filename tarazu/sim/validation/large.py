"""A cluster of 100,000 OSTs: the three applications of the scalability study at once, one run, its time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec

from tarazu.errors import TarazuError
from tarazu.sim.model import presets
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import Job
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow
from tarazu.sim.workloads import stand_ins
from tarazu.units import GIB

OSTS, SHORT_OSTS = 100_000, 400
APPLICATIONS: tuple[stand_ins.Name, ...] = ("genomicPrediction", "E3SM", "cosmoFlow")
SECONDS, PEAK_BYTES = 300.0, 8 * GIB
STEPS = 2
RESOLUTION_S = 0.1
POLICY = "tarazu"


class Cost(msgspec.Struct, frozen=True):
    """What one run took, in a process of its own."""

    seconds: float
    peak_bytes: int
    bytes: int
    """Read and written, as the simulator counts them."""
    wanted_bytes: int
    """The same, as the workloads have them."""


def jobs(names: Sequence[stand_ins.Name]) -> list[Job]:
    """Applications of the paper's table 7 beside one another."""
    made, node = [], 0
    for name in names:
        work = stand_ins.workload(name=name, steps=STEPS)
        made.append(Job(work, striping="plain", first_node=node))
        node += work.nodes
    return made


def cost(osts: int, names: Sequence[stand_ins.Name]) -> Cost:
    """Run it here."""
    started = time.monotonic()
    spec = msgspec.structs.replace(presets.named("scaling").spec, osts=osts)
    work = jobs(names)
    outcome = Simulation(spec, POLICY, 0, resolution_s=RESOLUTION_S).run(work)
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    moved = sum(job.read_bytes + job.written_bytes for job in outcome.jobs)
    return Cost(seconds, peak, moved, sum(int(j.workload.operations["bytes"].sum()) for j in work))


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """Seconds and memory over what they may be, and that every byte arrived."""
    osts, names = (OSTS, APPLICATIONS) if full else (SHORT_OSTS, APPLICATIONS[-1:])
    progress(f"{osts:,} OSTs, {', '.join(names)}, {POLICY}")
    costs = _elsewhere(osts, names)
    seconds, memory = costs.seconds / SECONDS, costs.peak_bytes / PEAK_BYTES
    name = f"{osts:,} OSTs"
    apart = abs(costs.bytes / costs.wanted_bytes - 1)
    return (
        ValidationRow(name, "wall clock, s", SECONDS, costs.seconds, seconds, 1.0, "may take so long"),
        ValidationRow(
            name,
            "peak memory, GiB",
            PEAK_BYTES / GIB,
            costs.peak_bytes / GIB,
            memory,
            1.0,
            "may take so much",
        ),
        ValidationRow(name, "bytes moved", costs.wanted_bytes, costs.bytes, apart, 0.0, "the workloads"),
    )


def _elsewhere(osts: int, names: Sequence[stand_ins.Name]) -> Cost:
    """In a process of its own, so that its peak is the run's."""
    program = (
        "import sys, msgspec; from tarazu.sim.validation.large import cost; "
        f"sys.stdout.write(msgspec.json.encode(cost({osts}, {names!r})).decode())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TarazuError(f"large: expected a result, found {done.stderr.strip()[-500:]}")
    return msgspec.convert(json.loads(done.stdout), Cost)
