"""How a job's traffic lies on its nodes, by its pattern: reproducible, each job for itself."""

from __future__ import annotations

import numpy as np

from tarazu.parts.bursts.study.queue import Queue, TrafficPattern
from tarazu.sim.kernel.fluid import Floats

MOST = 0.93
"""Of one node in an uneven job: well below the 95 % of rank-0 I/O."""
LEAST_NUD = 0.07
"""Of an uneven job: well above the 0.05 of an even one."""
REST = 0.05
"""At most so much of an uneven job's bytes do the others move."""
WRITERS = 6
"""At most so many nodes write for the others in a divergent application: with more, its jobs lie close together."""


def shares(queue: Queue, job: int) -> Floats:
    """Part of the job's bytes that each of its nodes moves, in the order of ranks: (size,), sum 1."""
    applications, at = queue.applications, int(queue.application[job])
    divergent = bool(applications.divergent[at])
    own = np.random.default_rng((queue.seed, 1, int(applications.seed[at])))
    now = np.random.default_rng((queue.seed, 2, job))
    writers = float(applications.writers[at])
    return drawn(TrafficPattern(int(queue.pattern[job])), int(queue.size[job]), writers, divergent, own, now)


def drawn(
    pattern: TrafficPattern,
    size: int,
    writers: float,
    divergent: bool,
    own: np.random.Generator,
    now: np.random.Generator,
) -> Floats:
    """The same with the numbers that are the application's `own`, and those that are of this job (`now`). `writers`:
    the part of its nodes that does the others' I/O where it is uneven."""
    if pattern == TrafficPattern.SINGLE:
        return np.ones(1)
    small = now.lognormal(0.0, 0.05, size)
    if pattern == TrafficPattern.EVEN:
        return _parts(own.lognormal(0.0, 0.07, size) * small)
    which = now if divergent else own
    if pattern == TrafficPattern.ROOT:
        parts = (1 - 0.96) * which.random() * _parts(small)
        at = int(now.integers(size)) if divergent else 0
        parts[at] += 1 - parts.sum()
        return parts
    return (
        _uneven(size, divergent, which) if size == 2 else _collected(size, writers, divergent, which, small)
    )


def _uneven(size: int, divergent: bool, which: np.random.Generator) -> Floats:
    """Of two nodes."""
    most = which.uniform(0.75, MOST)
    parts = np.array([most, 1 - most])
    return parts[::-1].copy() if divergent and which.random() < 0.5 else parts


def _collected(size: int, part: float, divergent: bool, which: np.random.Generator, small: Floats) -> Floats:
    """Some nodes, equally far from one another or (divergent) anywhere, collect most for the others."""
    writers = max(1, round(size * part))
    if divergent:
        writers = min(writers, WRITERS)
        at = which.choice(size, writers, replace=False)
    else:
        at = np.arange(writers) * (size // writers)
    parts = which.uniform(0.0, REST) * _parts(small)
    parts[at] += (1 - parts.sum()) * _parts(which.lognormal(0.0, 0.7, writers) * small[at])
    while parts.max() > MOST:
        parts = 0.9 * parts + 0.1 / size
    while 1 + float((parts * np.log(parts)).sum()) / np.log(size) < LEAST_NUD:
        parts = _parts(parts**1.3)
    return parts


def _parts(values: Floats) -> Floats:
    parts: Floats = values / values.sum()
    return parts
