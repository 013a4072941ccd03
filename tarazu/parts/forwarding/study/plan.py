"""Which IOR runs a site should make for what its applications do, the most useful first.

A run stands for all phases near it; the next one is always that for which most bytes are not yet
stood for. What the benchmark database has is not run again.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.estimate.database import BenchmarkPattern, Benchmarks
from tarazu.parts.forwarding.estimate.match import category, place
from tarazu.parts.forwarding.estimate.wanted import wanted
from tarazu.parts.forwarding.study.ior import APIS, directory
from tarazu.trace.phases.phase import Api, Operation, Phase
from tarazu.units import exact_bytes

NEAR = 1.0
"""Doublings, all four numbers together, within which one benchmark stands for a phase."""
MOST_PATTERNS = 4000
"""Different ones, those of the most bytes."""
RESULTS = "results"
"""Folder of IOR's outputs."""
ALIGNED = 8
"""IOR's transfers are multiples of so many bytes."""
_IOR_API = {ours: theirs for theirs, ours in APIS.items()}


class Need(NamedTuple):
    """One run of an application."""

    phases: Sequence[Phase]
    nodes: int


class IorRun(msgspec.Struct, frozen=True):
    """An IOR run to be made with each number of resources."""

    pattern: BenchmarkPattern
    """Its operation is `read` where it reads what it has written, and then stands for both."""
    resources: tuple[int, ...]
    """Those that are not in the database yet, ascending."""
    share: float
    """Of the history: what it stands for, and no run before it."""


class IorPlan(msgspec.Struct, frozen=True):
    runs: tuple[IorRun, ...]
    there: float
    """Share of the history for which benchmarks are in the database."""
    left: float
    """Share for which neither they nor these runs stand."""


def plan(
    needs: Iterable[Need],
    benchmarks: Benchmarks,
    kind: Kind,
    numbers: Sequence[int],
    repetitions: int,
    most: int,
) -> IorPlan:
    """At most so many runs, for each of these numbers of resources."""
    weights: dict[BenchmarkPattern, float] = {}
    for need in needs:
        for phase in need.phases:
            for want in wanted(phase, need.nodes, kind):
                pattern = rounded(want.pattern)
                weights[pattern] = weights.get(pattern, 0.0) + want.bytes
    whole = sum(weights.values())
    if not whole:
        return IorPlan((), 0.0, 0.0)
    has = _present(benchmarks, repetitions)
    complete = _Near([p for p, measured in has.items() if measured >= set(numbers)])
    left = {p: w for p, w in weights.items() if not complete.to(p)}
    there = 1 - sum(left.values()) / whole
    left = dict(sorted(left.items(), key=lambda item: -item[1])[:MOST_PATTERNS])
    forgotten = 1 - there - sum(left.values()) / whole
    runs: list[IorRun] = []
    near = _Near(list(left))
    covers = {
        of: [p for o in operations(of) for p in near.to(msgspec.structs.replace(of, operation=o))]
        for of in left
    }
    while left and len(runs) < most:
        best = max(left, key=lambda of: (sum(left.get(p, 0.0) for p in covers[of]), left[of]))
        gained = sum(left.pop(p, 0.0) for p in covers[best])
        missing = tuple(n for n in sorted(numbers) if n not in _measured(best, has))
        if missing:
            runs.append(IorRun(best, missing, gained / whole))
    return IorPlan(tuple(runs), there, forgotten + sum(left.values()) / whole)


def _present(benchmarks: Benchmarks, repetitions: int) -> dict[BenchmarkPattern, set[int]]:
    """The numbers of resources at which each was repeated often enough."""
    return {
        b.pattern: {p.resources for p in b.curve.points if len(p.bytes_per_s) >= repetitions}
        for b in benchmarks.all
    }


def _measured(pattern: BenchmarkPattern, has: dict[BenchmarkPattern, set[int]]) -> Collection[int]:
    """What is there of all that this run would measure."""
    each = [has.get(msgspec.structs.replace(pattern, operation=o), set()) for o in operations(pattern)]
    return set.intersection(*each)


def operations(of: BenchmarkPattern) -> tuple[Operation, ...]:
    return ("write", "read") if of.operation == "read" else ("write",)


class _Near:
    """Patterns by where they lie: a benchmark stands for those of its kind that are near."""

    def __init__(self, patterns: Sequence[BenchmarkPattern]) -> None:
        self._by: dict[tuple[str, ...], list[BenchmarkPattern]] = {}
        for pattern in patterns:
            self._by.setdefault(category(pattern), []).append(pattern)
        self._places = {key: np.array([place(p) for p in of]) for key, of in self._by.items()}

    def to(self, pattern: BenchmarkPattern) -> list[BenchmarkPattern]:
        key = category(pattern)
        if key not in self._by:
            return []
        away = ((self._places[key] - place(pattern)) ** 2).sum(1)
        return [self._by[key][i] for i in np.flatnonzero(away <= NEAR**2 * (1 + 1e-9)).tolist()]


def rounded(pattern: BenchmarkPattern) -> BenchmarkPattern:
    """The nearest that IOR accepts: sizes of one or one and a half powers of two, blocks of whole transfers."""
    request = _round(pattern.request_bytes)
    requests = max(1, round(_round(pattern.process_bytes) / request))
    api: Api = "POSIX" if pattern.api == "STDIO" else pattern.api
    spatiality = pattern.spatiality
    if spatiality == "sequential" and (pattern.sharing == "unique" or requests == 1):
        spatiality = "contiguous"  # IOR leaves no gaps in a process's own file
    return msgspec.structs.replace(
        pattern, api=api, spatiality=spatiality, request_bytes=request, process_bytes=request * requests
    )


def _round(size: int) -> int:
    size = max(size, ALIGNED)
    power = 1 << math.floor(math.log2(size))
    choices = [power, power * 3 // 2, power * 2]
    return min((c for c in choices if c % ALIGNED == 0), key=lambda c: abs(math.log2(c / size)))


def setup(kind: Kind, resources: int, folder: str) -> str:
    """The command line that makes the directory of the runs with so many resources."""
    name = shlex.quote(f"{folder.rstrip('/')}/{directory(kind, resources)}")
    return f"mkdir -p {name}" + (f" && lfs setstripe -c {resources} {name}" if kind == "ost" else "")


def command(run: IorRun, number: int, resources: int, repetitions: int, folder: str, launcher: str) -> str:
    """The command line of one run: `tarazu sim benchmarks import` reads what it writes."""
    pattern = run.pattern
    kind = pattern.kind
    strided = pattern.spatiality == "sequential"
    block = pattern.request_bytes if strided else pattern.process_bytes
    name = f"run-{number:03}-{kind}-{resources}"
    words = [launcher.format(nodes=pattern.nodes, processes=pattern.processes)]
    words += ["ior", "-a", _IOR_API[pattern.api], "-w"]
    words += ["-r"] if pattern.operation == "read" else []
    words += ["-C"] if pattern.operation == "read" and pattern.nodes > 1 else []
    words += ["-F"] if pattern.sharing == "unique" else []
    words += ["-c"] if pattern.spatiality == "collective" else []
    words += ["-z"] if pattern.spatiality == "random" else []
    words += ["-t", exact_bytes(pattern.request_bytes), "-b", exact_bytes(block)]
    words += ["-s", str(pattern.process_bytes // block), "-i", str(repetitions)]
    words += ["-o", shlex.quote(f"{folder.rstrip('/')}/{directory(kind, resources)}/{name}")]
    words += ["-O", "summaryFormat=JSON", "-O", f"summaryFile={RESULTS}/{name}.json"]
    return " ".join(words)
