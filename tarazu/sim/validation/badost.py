"""A real job with a sick OST (`sample-badost.darshan`): what its even ranks saw predicts when its odd ranks are done.

An OST's speed is that at which the even ranks' files on it were written, over the share of the OST's bytes that is
theirs: all of its writers were at work at once and share it alike. Nothing of an odd rank's times is read; which OST
its file is on, and how large it is, is what the job asks for. Both halves then write in the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

import msgspec
import numpy as np

from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim import badost
from tarazu.sim.model.simulation import Simulation
from tarazu.sim.model.spec import ClusterSpec, Job, ServiceCurve
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative
from tarazu.sim.workloads.workload import OPERATION, File, OperationKind, Workload
from tarazu.units import TIB

SICK = 14
LIMIT = 0.1
SOURCE = "sample-badost.darshan, odd ranks"


class Half(msgspec.Struct, frozen=True):
    """One OST: when the odd ranks' files on it were all written, in seconds after the first write."""

    ost: int
    logged_s: float
    predicted_s: float

    @property
    def error(self) -> float:
        return abs(self.predicted_s - self.logged_s) / self.logged_s


def even_speeds(log: badost.Log) -> dict[int, float]:
    """Bytes/s of each OST, from the times of even ranks only."""
    even = badost.ost_speeds(msgspec.structs.replace(log, files=_of_rank(log, 0)))
    share = {ost: _bytes(_of_rank(log, 0), ost) / _bytes(log.files, ost) for ost in even}
    return {ost: speed / share[ost] for ost, speed in even.items()}


def halves(
    log: badost.Log, speeds: Callable[[badost.Log], dict[int, float]] = even_speeds
) -> tuple[Half, ...]:
    """Every OST's odd ranks, as logged and as the simulator has them."""
    rates = speeds(log)
    osts = sorted(rates)
    fastest = max(rates.values())
    cluster = ClusterSpec(
        name="badost",
        osts=len(osts),
        osts_per_oss=1,
        ost_bytes=100 * TIB,
        write=ServiceCurve(fastest),
        read=ServiceCurve(fastest),
        nodes=len(log.files),
        speeds=tuple(rates[ost] / fastest for ost in osts),
    )
    # A job for the odd ranks of each OST, so that each has an end of its own; first one for all even ranks.
    groups = [_of_rank(log, 0), *(tuple(f for f in _of_rank(log, 1) if f.ost == ost) for ost in osts)]
    jobs, first_node = [], 0
    for number, group in enumerate(groups):
        jobs.append(
            Job(_workload(f"group{number}", group, log.stripe_size_bytes, osts), first_node=first_node)
        )
        first_node += len(group)
    ends = [job.end_s for job in Simulation(cluster, "lsa").run(jobs).jobs[1:]]
    began_s = min(f.start_s for f in _of_rank(log, 0))
    return tuple(
        Half(ost, max(f.end_s for f in group) - began_s, end)
        for ost, group, end in zip(osts, groups[1:], ends, strict=True)
    )


def _of_rank(log: badost.Log, remainder: int) -> tuple[badost.WrittenFile, ...]:
    return tuple(f for f in log.files if f.rank % 2 == remainder)


def _bytes(files: Sequence[badost.WrittenFile], ost: int) -> int:
    return sum(f.size_bytes for f in files if f.ost == ost)


def _workload(
    name: str, files: Sequence[badost.WrittenFile], stripe_size_bytes: int, osts: Sequence[int]
) -> Workload:
    """A rank a file, which it creates and writes where it was logged to be."""
    layout = Layout((Component(0, EOF, stripe_size_bytes, 1),))
    kinds = np.array([OperationKind.CREATE, OperationKind.WRITE, OperationKind.CLOSE])
    operations = np.zeros((len(files), len(kinds)), OPERATION)
    operations["rank"] = operations["file"] = np.arange(len(files))[:, None]
    operations["kind"] = kinds
    operations["bytes"][:, 1] = operations["span_bytes"][:, 1] = [f.size_bytes for f in files]
    placed = tuple(
        File(f"/{name}/{n}", f.size_bytes, layout=layout, osts=((osts.index(f.ost),),))
        for n, f in enumerate(files)
    )
    return Workload(name, len(files), 1, placed, operations.ravel())


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """The healthy OSTs' median, the sick one, and in the full form every OST."""
    progress("badost: 2,048 ranks, half of them predicted")
    predictions = halves(badost.load())
    healthy = median(half.error for half in predictions if half.ost != SICK)
    (sick,) = (half for half in predictions if half.ost == SICK)
    name = f"badost: {len(predictions) - 1} healthy OSTs, median"
    result = [
        ValidationRow(name, "completion, |error|", 0.0, healthy, healthy, LIMIT, SOURCE),
        ValidationRow(
            f"badost: OST {SICK}", "completion, s", sick.logged_s, sick.predicted_s, sick.error, LIMIT, SOURCE
        ),
    ]
    if full:
        result += [
            relative(f"badost: OST {h.ost}", "completion, s", h.logged_s, h.predicted_s, math.inf, SOURCE)
            for h in predictions
            if h.ost != SICK
        ]
    return tuple(result)
