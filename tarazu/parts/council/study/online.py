"""The online evaluation (Bez et al., Adaptive Request Scheduling, sections V-C and V-D): the real council on simulated
I/O nodes, in simulated time.

Applications run again and again while a council learns, beside the same runs under each window alone. Seconds are the
daemons': one is an interval of the simulation, for both are what an announcer waits between two observations (paper,
section V-E). Decisions come without delay: measured, they take some milliseconds of that second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tarazu.parts.council.council import Council, Rules
from tarazu.parts.council.pattern import Observation, Operation, Pattern
from tarazu.parts.council.study import learners
from tarazu.parts.council.study.requests.outcome import NodeInterval, Setting
from tarazu.parts.council.study.requests.run import simulate
from tarazu.parts.council.study.requests.situation import (
    INTERVAL_S,
    SCALE,
    TABLE_III,
    WINDOWS,
    WINDOWS_S,
    Phase,
    Workload,
)
from tarazu.sim.study.case import Case

LEVER = "window"
FIRST = 3
"""Index of the window that is in force before anything is decided: 1 ms."""
F_PART = 2 * SCALE
"""Of situation F each process makes half of the requests that it makes in the evaluation of the situations: what 120
runs may take says so."""
MADBENCH_PROCESSES, MADBENCH_PIXELS, MADBENCH_BINS = 256, 1280, 80
"""N_p, N_pix and N_bin of section V-D (N_gang is 1)."""
MATRIX_BYTES = 8 * MADBENCH_PIXELS**2
"""A matrix of N_pix x N_pix doubles, which all processes share out among them: 51,200 bytes each."""
C_PASSES = 4
"""C reads all N_bin matrices again for each of them, 84 GB in all; here so many times."""


def write_and_read(times: int, part: int = F_PART) -> Workload:
    """The benchmark of section V-C: four I/O nodes; 128 processes write 4 GB of a shared file in 1D-strided requests of
    32 KB and read them (situation F), again and again.
    """
    one = TABLE_III["F"]
    write = one._replace(operation="write").phase(part)._replace(name="write")
    return Workload(one.nodes, (write, one.phase(part)._replace(name="read")) * times)


def madbench2(times: int, part: int = SCALE) -> Workload:
    """MADbench2's components S, W and C on one shared file, again and again (table V).

    The matrices lie one after another and each process has its part of each: 1D-strided. S writes N_bin of them, W
    reads N_bin and writes N_bin into another file, C reads all, `C_PASSES` times, each a phase. The calculations
    between are left out, as is MPI's part.
    """
    size = MATRIX_BYTES // MADBENCH_PROCESSES

    def phase(name: str, operation: Operation, matrices: int) -> Phase:
        total = matrices * MATRIX_BYTES
        return Phase(name, operation, "strided", True, MADBENCH_PROCESSES, size, total, part)

    return Workload(
        4,
        (
            phase("S", "write", MADBENCH_BINS),
            phase("W", "both", 2 * MADBENCH_BINS),
            *(phase("C", "read", MADBENCH_BINS) for _ in range(C_PASSES)),
        )
        * times,
    )


APPLICATIONS: dict[str, Callable[[int], Workload]] = {"F": write_and_read, "MADbench2": madbench2}


class Manner(NamedTuple):
    """How the council learns and decides."""

    name: str
    learner: str
    dwell_s: float
    """Of the daemons' seconds."""
    worse: float


PAPER = Manner("the paper's", learners.PAPER, 0.0, 1.0)
"""Algorithm 1: a decision a second, nothing is taken back."""
OURS = Manner("ours", learners.OURS, 1.0, 0.2)
"""A window costs nothing to set, and tells within a second: so it need not stay longer than the paper's."""
MANNERS = (PAPER, OURS)


def described(manner: Manner | None, window: int) -> str:
    """How a run is controlled; None: by one window for all."""
    return manner.name if manner else WINDOWS[window]


class ControlStep(NamedTuple):
    """One interval of all I/O nodes."""

    second: float
    """When it ended, in the daemons' seconds."""
    window: int
    """Index of the window that was in force."""


class Control:
    """What `simulate` asks at the end of each interval."""

    def __init__(self, manner: Manner, seed: int) -> None:
        self.steps: list[ControlStep] = []
        self.council = Council(
            {LEVER: WINDOWS},
            learners.LEARNERS[manner.learner],
            Rules(manner.dwell_s, manner.worse),
            seed=seed,
            detect=self._true,
        )
        self._seen: NodeInterval | None = None

    def __call__(self, now_s: float, seen: Sequence[NodeInterval]) -> float:
        second, window = now_s / INTERVAL_S, WINDOWS_S.index(seen[0].window_s)
        self.steps.append(ControlStep(second, window))
        for self._seen in seen:
            host, in_force = f"node{self._seen.node}", {LEVER: WINDOWS[window]}
            self.council.receive(host, self._seen.observation, in_force, second)
            self.council.decide(second)
        value = self.council.decision.values.get(LEVER, WINDOWS[FIRST])
        return WINDOWS_S[WINDOWS.index(value)]

    def _true(self, observation: Observation) -> Pattern | None:
        """A perfect detection. Where two phases met in an interval it shows neither."""
        seen = self._seen
        assert seen is not None
        mixed = observation.read.bytes > 0 and observation.write.bytes > 0
        return None if mixed and seen.pattern.operation != "both" else seen.pattern


class Runs(Case, frozen=True):
    """An application, again and again."""

    application: str
    runs: int
    manner: Manner | None
    """None: one window for all."""
    window: int = FIRST
    """Index of the window at the start."""
    seed: int = 1

    @property
    def label(self) -> str:
        how = described(self.manner, self.window)
        return f"{self.runs} runs of {self.application}, {how}, seed {self.seed}"

    @property
    def weight(self) -> float:
        return self.runs * sum(p.requests * p.processes for p in APPLICATIONS[self.application](1).phases)


class Ran(NamedTuple):
    """What came of it."""

    case: Runs
    phases: tuple[str, ...]
    """Names of the phases of a run."""
    times_s: tuple[tuple[float, ...], ...]
    """(phases, runs): how long each took, in the daemons' seconds."""
    begins_s: tuple[tuple[float, ...], ...]
    steps: tuple[ControlStep, ...]
    """Empty under one window."""
    learned: tuple[dict[str, Any], ...]
    """Rows of `Council.explain` at the end."""


def rows(case: Runs, progress: object = None) -> list[Ran]:
    """Compute a case."""
    workload = APPLICATIONS[case.application](case.runs)
    control = Control(case.manner, case.seed) if case.manner else None
    outcome = simulate(workload, Setting("twins", WINDOWS_S[case.window]), case.seed, controller=control)
    of_run = len(workload.phases) // case.runs
    names = tuple(dict.fromkeys(phase.name for phase in workload.phases))
    runs = [outcome.phases[begin : begin + of_run] for begin in range(0, len(outcome.phases), of_run)]
    # A component of an application may be several phases of one name, one after another.
    parts = [[[phase for phase in run if phase.name == name] for run in runs] for name in names]
    ran = Ran(
        case,
        names,
        tuple(tuple((run[-1].end_s - run[0].begin_s) / INTERVAL_S for run in one) for one in parts),
        tuple(tuple(run[0].begin_s / INTERVAL_S for run in one) for one in parts),
        tuple(control.steps) if control else (),
        tuple(control.council.explain()) if control else (),
    )
    return [ran]
