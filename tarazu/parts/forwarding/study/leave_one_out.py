"""How well benchmarks tell an application's curve: applications on the simulated cluster, each estimated from the
benchmarks that are not its own phases (paper E, sections 3 to 6, where the benchmark was the phase itself).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Literal

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, estimate
from tarazu.parts.forwarding.estimate.match import category, place
from tarazu.parts.forwarding.estimate.wanted import wanted
from tarazu.parts.forwarding.study.accuracy import Accuracy, accuracy
from tarazu.parts.forwarding.study.benchmarks import (
    NUMBERS,
    RANKS_PER_NODE,
    measure,
    seconds,
    seed_of,
    spread_out,
    workload,
)
from tarazu.parts.forwarding.study.benchmarks import REPETITIONS as BENCHMARK_REPETITIONS
from tarazu.sim.workloads import hacc
from tarazu.sim.workloads.workload import Workload
from tarazu.trace.phases.phase import Api, Operation, Phase, Sharing, Spatiality
from tarazu.units import KIB, MIB

PROCESSES = (4, 8, 16, 32)
PROCESS_BYTES = (4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
REQUESTS = {
    "contiguous": (16 * KIB, MIB, 16 * MIB),
    "sequential": (16 * KIB, 64 * KIB, 256 * KIB, MIB),
    "collective": (MIB,),
}
WAYS: tuple[tuple[Api, Sharing, Spatiality], ...] = (
    ("POSIX", "shared", "contiguous"),
    ("POSIX", "shared", "sequential"),
    ("POSIX", "unique", "contiguous"),
    ("MPI-IO", "shared", "collective"),
)
OPERATIONS: tuple[Operation, ...] = ("read", "write")
REPETITIONS = 5
"""Of an application."""

Family = Literal["ior", "hacc", "checkpoint"]


def grid(kind: Kind, processes: Sequence[int] = PROCESSES) -> list[BenchmarkPattern]:
    """What the site has measured: all combinations."""
    return [
        BenchmarkPattern(kind, operation, api, sharing, spatiality, request, moved, count, -(-count // RANKS_PER_NODE))
        for operation in OPERATIONS
        for api, sharing, spatiality in WAYS
        for request in REQUESTS[spatiality]
        for moved in PROCESS_BYTES
        for count in processes
        if request <= moved
    ]  # fmt: skip


class Hacc(msgspec.Struct, frozen=True):
    """A HACC-IO checkpoint (write) or restart (read), a file a process."""

    kind: Kind
    operation: Operation
    particles: int
    processes: int


class ApplicationStep(msgspec.Struct, frozen=True):
    """What an application does so many times."""

    what: BenchmarkPattern | Hacc
    times: int = 1


class Made(msgspec.Struct, frozen=True):
    """An application."""

    name: str
    family: Family
    on_grid: bool
    """Its phases are among the patterns that were measured (and are then left out), or between them."""
    nodes: int
    steps: tuple[ApplicationStep, ...]

    @property
    def kind(self) -> Kind:
        return self.steps[0].what.kind


def applications(kind: Kind, count: int, seed: int = 0, processes: Sequence[int] = PROCESSES) -> list[Made]:
    """IOR-like ones of 2 to 4 phases that differ, HACC-like and checkpointing ones; half of the first and the last on
    the grid, the others between its points."""
    rng = np.random.default_rng([seed, seed_of(kind)])
    families: tuple[Family, ...] = ("ior", "checkpoint", "ior", "hacc")
    made = []
    for at in range(count):
        on_grid = bool(at // 4 % 2)
        count_of = int(rng.choice(processes) if on_grid else rng.integers(processes[0], processes[-1] + 1))
        made.append(_made(kind, at, families[at % 4], on_grid, count_of, rng))
    # Names decide what noise is drawn.
    return [msgspec.structs.replace(m, name=f"{m.name}-seed{seed}") for m in made] if seed else made


def _made(
    kind: Kind, number: int, family: Family, on_grid: bool, processes: int, rng: np.random.Generator
) -> Made:
    nodes = -(-processes // RANKS_PER_NODE)

    def step(operation: Operation | None, times: tuple[int, int] | None = None) -> ApplicationStep:
        pattern = _pattern(kind, operation, processes, nodes, on_grid, rng)
        return ApplicationStep(pattern, int(rng.integers(*times)) if times else 1)

    steps: tuple[ApplicationStep, ...]
    if family == "hacc":
        particles = int(rng.integers(20, 1000)) * 1000
        write = ApplicationStep(Hacc(kind, "write", particles, processes), int(rng.integers(1, 6)))
        steps = (write, ApplicationStep(Hacc(kind, "read", particles, processes)))
    elif family == "ior":
        steps = tuple(step(None, (1, 4)) for _ in range(int(rng.integers(2, 5))))
    else:
        steps = (step("read"), step("write", (4, 20)), step("write", (1, 10)))
    return Made(f"{family}-{number}", family, on_grid and family != "hacc", nodes, steps)


def _pattern(
    kind: Kind,
    operation: Operation | None,
    processes: int,
    nodes: int,
    on_grid: bool,
    rng: np.random.Generator,
) -> BenchmarkPattern:
    operation = operation or OPERATIONS[int(rng.integers(2))]
    api, sharing, spatiality = WAYS[int(rng.integers(len(WAYS)))]
    requests = REQUESTS[spatiality]
    if on_grid:
        moved = int(rng.choice(PROCESS_BYTES))
        request = int(rng.choice([r for r in requests if r <= moved]))
    else:
        low, high = np.log2(requests[0]), np.log2(requests[-1])
        request = round(2 ** float(rng.uniform(low, high)) / KIB) * KIB
        moved = round(2 ** float(rng.uniform(22, 28)) / request) * request or request
    return BenchmarkPattern(kind, operation, api, sharing, spatiality, request, moved, processes, nodes)


def phase_of(step: ApplicationStep) -> Phase:
    """What a Darshan log of one time would say."""
    what = step.what
    if isinstance(what, Hacc):
        n = what.particles
        each = ((4 * n, 7), (hacc.HEADER_BYTES, 1), (8 * n, 1), (2 * n, 1))
        sizes = tuple((size, times * what.processes) for size, times in each)
        moved = what.processes * hacc.hacc_bytes(n)
        way: tuple[Api, Sharing, Spatiality] = ("POSIX", "unique", "contiguous")
    else:
        sizes = ((what.request_bytes, what.bytes // what.request_bytes),)
        moved = what.bytes
        way = (what.api, what.sharing, what.spatiality)
    api, sharing, spatiality = way
    shared = sharing == "shared"
    return Phase(
        start_s=0.0,
        end_s=1.0,
        operation=what.operation,
        ranks=None,
        rank_count=what.processes,
        bytes=moved,
        io_s=1.0,
        api=api,
        requests=sum(count for _, count in sizes),
        spatiality=spatiality,
        sharing=sharing,
        files=1 if shared else what.processes,
        processes_per_file=what.processes if shared else 1,
        request_sizes=sizes,
    )


def _work(step: ApplicationStep, number: int) -> tuple[Workload, bool]:
    what = step.what
    if isinstance(what, BenchmarkPattern):
        return workload(what, f"step{number}"), what.sharing == "shared"
    made = hacc.workload(
        ranks=what.processes,
        particles=what.particles,
        write=what.operation == "write",
        read=what.operation == "read",
        ranks_per_node=RANKS_PER_NODE,
        name=f"step{number}",
    )
    return made, False


def bandwidth(task: tuple[Made, int, int, bool]) -> float:
    """Bytes over seconds of I/O of one run: (application, resources, repetition, quiet)."""
    made, resources, repetition, quiet = task
    works = [_work(step, at) for at, step in enumerate(made.steps)]
    seed = seed_of("application", made.name, resources, repetition)
    taken = seconds(works, made.kind, resources, seed, quiet)
    moved = sum(phase_of(step).bytes * step.times for step in made.steps)
    return moved / sum(s * step.times for s, step in zip(taken, made.steps, strict=True))


def true_curves(
    made: Sequence[Made],
    repetitions: int = REPETITIONS,
    quiet: bool = False,
    numbers: Sequence[int] = NUMBERS,
    progress: Callable[[str], object] = lambda text: None,
    jobs: int | None = None,
) -> list[Curve]:
    """Their bandwidth over all their phases, by number of resources. quiet: without noise, but for where Lustre's
    allocator begins."""
    tasks = [(one, n, r, quiet) for one in made for n in numbers for r in range(repetitions)]
    rates = []
    for at, rate in enumerate(spread_out(bandwidth, tasks, jobs), 1):
        rates.append(rate)
        progress(f"{at} of {len(tasks)} simulated runs of applications")
    each = len(numbers) * repetitions
    return [
        curve((task[1], rate) for task, rate in zip(tasks[i : i + each], rates[i : i + each], strict=True))
        for i in range(0, len(tasks), each)
    ]


class Judged(msgspec.Struct, frozen=True):
    """One application's estimate beside the truth."""

    made: Made
    estimated: Curve
    accuracy: Accuracy
    plain: Accuracy
    """Of paper E's own way: the one nearest benchmark of each phase, its mean."""


def judge(made: Made, true: Curve, usual: Curve, benchmarks: Benchmarks) -> Judged:
    """Estimate it without the benchmarks that equal its phases. `usual`: without noise."""
    own = {step.what for step in made.steps if isinstance(step.what, BenchmarkPattern)}
    left = Benchmarks(m for m in benchmarks.measurements if m.pattern not in own)
    phases = [phase_of(step) for step in made.steps for _ in range(step.times)]
    estimated = estimate(phases, left, made.nodes, made.kind)
    assert estimated, "the grid has something like every phase"
    return Judged(
        made,
        estimated.curve,
        accuracy(estimated.curve, true, usual),
        accuracy(nearest(made, left), true, usual),
    )


def nearest(made: Made, benchmarks: Benchmarks) -> Curve:
    """What paper E does, where no benchmark is the phase: the nearest one, its mean over repetitions, and the mean size
    of requests."""
    taken: Counter[int] = Counter()
    moved = 0
    for step in made.steps:
        phase = phase_of(step)
        moved += phase.bytes * step.times
        (want,) = wanted(msgspec.structs.replace(phase, request_sizes=()), made.nodes, made.kind)
        p = want.pattern
        like = [b for b in benchmarks.all if category(b.pattern) == category(p)]
        best = min(like, key=lambda b: float(((place(b.pattern) - place(p)) ** 2).sum()))
        for point in best.curve.points:
            taken[point.resources] += phase.bytes * step.times / fmean(point.bytes_per_s)  # type: ignore[assignment]
    return curve((n, moved / s) for n, s in taken.items())


class LeaveOneOutSummary(msgspec.Struct, frozen=True):
    """Over applications."""

    applications: int
    mean_error: float
    exact: float
    as_good: float
    mean_regret: float
    worst_regret: float


def summary(found: Sequence[Accuracy]) -> LeaveOneOutSummary:
    return LeaveOneOutSummary(
        len(found),
        fmean(a.error for a in found),
        fmean(a.exact for a in found),
        fmean(a.as_good for a in found),
        fmean(a.regret for a in found),
        max(a.worst_regret for a in found),
    )


class LeaveOneOutStudy(msgspec.Struct, frozen=True):
    """How large: the defaults are what docs/forwarding.md tells."""

    kind: Kind
    applications: int = 60
    processes: tuple[int, ...] = PROCESSES
    numbers: tuple[int, ...] = NUMBERS
    repetitions: int = REPETITIONS
    benchmark_repetitions: int = BENCHMARK_REPETITIONS
    seed: int = 0


def study(
    of: LeaveOneOutStudy, progress: Callable[[str], object] = lambda text: None, jobs: int | None = None
) -> list[Judged]:
    """All of it: benchmarks, applications, estimates. jobs: processes at once (None: as many as processors)."""
    made = applications(of.kind, of.applications, of.seed, of.processes)
    true = true_curves(made, of.repetitions, False, of.numbers, progress, jobs)
    usual = true_curves(made, -(-of.repetitions // 2), True, of.numbers, progress, jobs)
    asked = {
        category(w.pattern)
        for one in made
        for s in one.steps
        for w in wanted(phase_of(s), one.nodes, of.kind)
    }
    patterns = [p for p in grid(of.kind, of.processes) if category(p) in asked]
    benchmarks = Benchmarks(measure(patterns, of.numbers, of.benchmark_repetitions, progress, jobs))
    return [judge(*each, benchmarks) for each in zip(made, true, usual, strict=True)]
