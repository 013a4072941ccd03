"""The online evaluation (Bez et al., Adaptive Request Scheduling, sections V-C and V-D) in simulated time.

Applications run again and again while a council learns, beside the same runs under each window alone; and the disks
are replaced while one runs. Seconds are the daemons': one for each interval of the simulation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tarazu.sim.requests.simulate import Setting, simulate
from tarazu.sim.requests.situation import INTERVAL_S, SCALE, TABLE_III, WINDOWS, WINDOWS_S
from tarazu.sim.requests.workload import Phase, Workload
from tarazu.sim.tuning.control import FIRST, Control, Manner, Step

NODES = 4
"""I/O nodes of both applications (section V-C)."""
F_RUNS = 120
F_PART = 2 * SCALE
"""Of one run of situation F each process makes the first half of the requests that the paper's would make, scaled."""
MADBENCH_RUNS = 20
PIXELS, BINS, RANKS = 1280, 80, 256
"""N_pix, N_bin, N_p of MADbench2 (section V-D); N_gang is 1."""
MATRIX_BYTES = 8 * PIXELS**2
"""Of doubles. A rank has its share of it, one request."""


def situation_f() -> tuple[Phase, ...]:
    """One run of the benchmark of section V-C: written, then read."""
    f = TABLE_III["F"]
    return tuple(f._replace(operation=way).phase(F_PART)._replace(name=way) for way in ("write", "read"))


def madbench() -> tuple[Phase, ...]:
    """One run of a MADbench2-like S, W, C (table V): S writes each bin's matrix, W reads and writes each, C reads each.

    (The table's C reads each bin's matrix N_bin times; the paper has its times as those of a short phase.)
    """
    s = Phase("S", "write", "strided", True, RANKS, MATRIX_BYTES // RANKS, BINS * MATRIX_BYTES, SCALE)
    w = s._replace(name="W", operation="both", total_bytes=2 * BINS * MATRIX_BYTES)
    return s, w, s._replace(name="C", operation="read")


APPLICATIONS: dict[str, Callable[[], tuple[Phase, ...]]] = {"F": situation_f, "MADbench2": madbench}


class Runs(NamedTuple):
    """An application, again and again. A case of `study.runner`."""

    application: str
    runs: int
    manner: Manner | None
    """None: one window for all."""
    window: int = FIRST
    """Index of the window at the start."""
    seed: int = 1

    @property
    def id(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        how = self.manner.name if self.manner else WINDOWS[self.window]
        return f"{self.runs} runs of {self.application}, {how}, seed {self.seed}"

    @property
    def weight(self) -> float:
        return float(
            self.runs * sum(phase.requests * phase.processes for phase in APPLICATIONS[self.application]())
        )

    @property
    def computed_by(self) -> str:
        return __name__


class Ran(NamedTuple):
    """What came of it."""

    case: Runs
    phases: tuple[str, ...]
    """Names of the phases of a run."""
    times_s: tuple[tuple[float, ...], ...]
    """(phases, runs): how long each took, in the daemons' seconds."""
    begins_s: tuple[tuple[float, ...], ...]
    steps: tuple[Step, ...]
    """Empty under one window."""
    learned: tuple[dict[str, Any], ...]
    """Rows of `Council.explain` at the end."""


def rows(case: Runs, progress: object = None) -> list[Ran]:
    """Compute a case."""
    phases = APPLICATIONS[case.application]()
    control = Control(case.manner, case.seed) if case.manner else None
    outcome = simulate(
        Workload(NODES, phases * case.runs),
        Setting("twins", WINDOWS_S[case.window]),
        case.seed,
        controller=control,
        features=case.manner is not None and case.manner.classifier,
    )
    of_phase = [outcome.phases[number :: len(phases)] for number in range(len(phases))]
    return [
        Ran(
            case,
            tuple(phase.name for phase in phases),
            tuple(tuple((run.end_s - run.begin_s) / INTERVAL_S for run in one) for one in of_phase),
            tuple(tuple(run.begin_s / INTERVAL_S for run in one) for one in of_phase),
            tuple(control.steps) if control else (),
            tuple(control.council.explain()) if control else (),
        )
    ]


def trend(values: Sequence[float]) -> tuple[float, float]:
    """First and last value of the straight line through them (least squares), as in figure 6."""
    n = len(values)
    if n < 2:
        return (values[0], values[0])
    middle, mean = (n - 1) / 2, sum(values) / n
    slope = sum((i - middle) * v for i, v in enumerate(values)) / sum((i - middle) ** 2 for i in range(n))
    return mean - slope * middle, mean + slope * middle
