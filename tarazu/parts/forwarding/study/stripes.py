"""Mixtures of jobs whose shared files are striped over OSTs: `layout.stripe_count = curve` beside `auto`.

The jobs come one after another, as job steps ask mdsd: each is told its count by `joint` among those that run. When
all are there each asks again, as it does with the plan of its next files. Each phase writes a shared file of its own,
as the curves were measured (paper A, section 5.1); whichever OSTs they are is then chosen for all counts alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, FileName, Forecast, Layout
from tarazu.parts.forwarding.application import Application, Resources
from tarazu.parts.forwarding.joint.policy import count
from tarazu.parts.forwarding.study import curve_sets
from tarazu.parts.forwarding.study.metrics import measure
from tarazu.parts.forwarding.study.schedulers import LeastStressed
from tarazu.parts.forwarding.study.workload import generate
from tarazu.units import GIB, MIB

OSTS = 8
JOBS = 8
RANKS = 16
LOADS = (0.1, 0.3, 0.5, 0.8)
"""I/O-load with one OST for each job."""
AMONG = Resources("ost", OSTS, 480)
SITE_DEFAULT = Layout((Component(0, EOF, MIB, 1),))


class Mixture(msgspec.Struct, frozen=True):
    """Jobs in the order in which they come, and what they got."""

    load: float
    auto: tuple[int, ...]
    first: tuple[int, ...]
    """`curve`, as they came."""
    curve: tuple[int, ...]
    """`curve`, once each has asked again."""
    first_ratio: float
    """Mean slowdown under `curve`, as they came, over that under `auto`."""
    ratio: float
    """The same once each has asked again."""


def mixtures(loads: Sequence[float] = LOADS, each: int = 10) -> Iterator[Mixture]:
    """So many mixtures at each load; the same every time."""
    for load in loads:
        for seed in range(each):
            jobs = generate(curve_sets.generated("ost"), JOBS, load, seed, AMONG).applications
            counts = (auto_counts(jobs), first := curve_counts(jobs), again(jobs, first))
            auto, came, asked = (_slowdown(jobs, each_count) for each_count in counts)
            yield Mixture(load, *counts, came / auto, asked / auto)


def auto_counts(jobs: Sequence[Application]) -> tuple[int, ...]:
    """Stripes that `auto` gives the shared files of each job."""
    manager = ConfigurationManager(LayoutPolicy("auto"), UsableOsts(OSTS), SITE_DEFAULT)
    counts = []
    for job in jobs:
        choices = manager.choose([_file(job, number) for number in range(job.phases)])
        stripe_counts = [choice.layout.components[0].stripe_count for choice in choices if choice.layout]
        counts.append(max(stripe_counts))
    return tuple(counts)


def curve_counts(jobs: Sequence[Application]) -> tuple[int, ...]:
    """Those of `curve`: each job is told its own among those before it."""
    running: list[tuple[Application, int]] = []
    for job in jobs:
        running.append((job, count(running, job, AMONG)))
    return tuple(number for _, number in running)


def again(jobs: Sequence[Application], counts: Sequence[int]) -> tuple[int, ...]:
    """Each job asks once more, in the order in which they came."""
    current = list(counts)
    for number, job in enumerate(jobs):
        others = [(jobs[other], current[other]) for other in range(len(jobs)) if other != number]
        current[number] = count(others, job, AMONG)
    return tuple(current)


def _slowdown(jobs: Sequence[Application], counts: Sequence[int]) -> float:
    return measure(jobs, LeastStressed().place(jobs, counts, AMONG), AMONG).mean_slowdown


def _file(job: Application, number: int) -> Forecast:
    """At least so large that no object is too small to be worth a stripe: the curves know no sizes."""
    name = FileName(f"/{job.name}.{number}", f"/{job.name}.{number}", "/#.#", False, ANY_RANK, number, number)
    size = max(int(job.io_bytes / job.phases), GIB)
    return Forecast(name=name, size_bytes=size, at_s=float(number), writers=RANKS)
