"""Plays jobs on the simulated file system, one run after another (the wrapper of the paper's section 6.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from simpy.events import Event, Process, ProcessGenerator, Timeout

from tarazu import ranges
from tarazu.allocate import quality
from tarazu.errors import TarazuError
from tarazu.sim.model.application import SimulatedApplication, check
from tarazu.sim.model.client import JobPlans
from tarazu.sim.model.cluster import Cluster
from tarazu.sim.model.links import Direction, Floats, Numbers
from tarazu.sim.model.outcome import OssOutcome, OstOutcome, Outcome
from tarazu.sim.model.spec import ClusterSpec, Failure, Job

Progress = Callable[[float, float], object]
"""Told now and then: simulated seconds since the start of the run, share of the bytes that have moved (0-1)."""
TELL_S = 0.5
"""Of real time, between two words of progress."""
LOOK = 256
"""Events between two looks at the clock on the wall."""


class StandsStill(TarazuError):
    """The simulation has come to a point from which nothing can go on."""


class Simulation:
    """Runs jobs. What they leave (files, fill, statistics, the clock) is there for the next run.

    policy: a name of `tarazu.sim.allocation.policies`. seed: the same seed and calls give the same result, bit for bit.
    statistics_s: the policy sees what publishers sent at this interval; None: how things are. resolution_s: see
    `tarazu.sim.kernel.network`. failures: on the simulation's clock, which begins at 0. Raises ConfigError, BadInput.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        policy: str = "lsa",
        seed: int = 0,
        *,
        statistics_s: float | None = None,
        failures: Sequence[Failure] = (),
        resolution_s: float = 0.0,
    ) -> None:
        self.cluster = Cluster(cluster, policy, seed, failures, resolution_s, statistics_s)
        self._tick: Timeout | None = None
        self._last: dict[str, SimulatedApplication] = {}
        self.policy, self.seed = policy, seed

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return float(self.cluster.env.now)

    def run(self, jobs: Sequence[Job], progress: Progress | None = None) -> Outcome:
        """Play these jobs until all that are waited for have ended; background ones go on in the next run.

        Raises StandsStill where nothing can go on, InsufficientResources for a write without space left, BadInput
        for jobs that cannot be played.
        """
        check(jobs)
        cluster = self.cluster
        cluster.run_start_s = self.now
        cluster.moving_s = [0.0, 0.0]
        cluster.osts.watch_queues()
        if cluster.publisher and cluster.publisher.due_s <= self.now:
            cluster.publish()
        before, sharings = self._counts(), cluster.network.sharings
        all_background = all(job.background for job in jobs)
        applications = [
            SimulatedApplication(cluster, job, all_background or not job.background) for job in jobs
        ]
        processes = [(a, cluster.env.process(self._play(a))) for a in applications]
        self._go([a for a in applications if a.waited], [p for a, p in processes if a.waited], progress)
        self._last = {a.name: a for a in applications}
        return self._outcome(applications, before, cluster.network.sharings - sharings)

    def plan_of(self, job: str) -> JobPlans | None:
        """What tarazu planned for a job of the last run; None without statistics, and for those it did not plan."""
        return self._last[job].plan

    def placed_by(self, job: str) -> Numbers:
        """(OSTs,) bytes that new files of a job of the last run put there."""
        return self._last[job].placed

    def _play(self, application: SimulatedApplication) -> ProcessGenerator:
        self.cluster.running.add(application)
        try:
            yield from application.play()
        finally:
            self.cluster.running.discard(application)

    def _go(
        self, waited: Sequence[SimulatedApplication], processes: Sequence[Process], progress: Progress | None
    ) -> None:
        """Event after event until these processes have ended."""
        env = self.cluster.env
        all_bytes = sum(int(a.job.workload.operations["bytes"].sum()) for a in waited) or 1
        told = time.monotonic()
        events = 0
        for process in processes:
            while not process.processed:
                next_s = env.peek()
                if next_s == math.inf:
                    raise StandsStill(self._why_still(waited))
                self._publish_before(next_s)
                env.step()
                events += 1
                if progress and events % LOOK == 0 and time.monotonic() - told > TELL_S:
                    told = time.monotonic()
                    moved = sum(sum(a.moved) for a in waited)
                    progress(env.now - self.cluster.run_start_s, moved / all_bytes)
        if progress:
            progress(env.now - self.cluster.run_start_s, 1.0)

    def _publish_before(self, next_s: float) -> None:
        """Statistics that are due by then get an event of their own: only then, so that it keeps nothing alive."""
        publisher, env = self.cluster.publisher, self.cluster.env
        if publisher and self._tick is None and publisher.due_s <= next_s:
            self._tick = env.timeout(max(0.0, publisher.due_s - env.now))
            self._tick.callbacks.append(self._publish)

    def _publish(self, _: Event) -> None:
        self._tick = None
        self.cluster.publish()

    def _why_still(self, waited: Sequence[SimulatedApplication]) -> str:
        osts, streams = self.cluster.osts, self.cluster.network.streams()
        lost = [j for j in np.flatnonzero(osts.speed == 0).tolist() if osts.waiting(j, streams)]
        names = ", ".join(a.name for a in waited if a in self.cluster.running)
        where = f"for OST {ranges.fold(lost)}, which is lost" if lost else "for nothing that will come"
        return f"simulation: from {self.now:.6g} s on nothing can continue: job {names} waits {where}"

    def _counts(self) -> tuple[Floats, ...]:
        """(written, read, busy, operations under way times how long they were) of each OST up to now."""
        osts = self.cluster.osts
        osts.settle()
        return (
            osts.moved(Direction.WRITE),
            osts.moved(Direction.READ),
            osts.busy_s.copy(),
            osts.stream_s.copy(),
        )

    def _outcome(
        self, applications: Sequence[SimulatedApplication], before: tuple[Floats, ...], events: int
    ) -> Outcome:
        osts, osses, start_s = self.cluster.osts, self.cluster.osses, self.cluster.run_start_s
        written, have_read, busy, streams = (
            now - then for now, then in zip(self._counts(), before, strict=True)
        )
        waited = [a for a in applications if a.waited]
        nothing = np.zeros(osts.count, np.int64)
        placed = sum((a.placed for a in applications), nothing)
        own = sum((a.placed for a in waited), nothing)
        done = np.where(osts.done_s > start_s, osts.done_s - start_s, 0.0)
        fill = osts.taken() / osts.total_bytes
        columns = (
            placed,
            np.rint(have_read).astype(np.int64),
            np.rint(written).astype(np.int64),
            busy,
            np.maximum(0.0, streams - busy),
            osts.queue_max,
            done,
            fill,
        )
        of_servers = (
            osses.names,
            np.rint(osses.sums(have_read)).astype(np.int64).tolist(),
            np.rint(osses.sums(written)).astype(np.int64).tolist(),
            osses.cpu_s(osses.sums(have_read + written)).tolist(),
        )
        moved = [sum(a.moved[d] for a in waited) for d in Direction]
        rates = [m / s if s else 0.0 for m, s in zip(moved, self.cluster.moving_s, strict=True)]
        return Outcome(
            policy=self.policy,
            seed=self.seed,
            end_s=max((a.end_s - start_s for a in waited), default=0.0),
            jobs=tuple(a.outcome() for a in applications if a not in self.cluster.running),
            osts=tuple(
                OstOutcome(j, *values)
                for j, values in enumerate(zip(*(c.tolist() for c in columns), strict=True))
            ),
            osses=tuple(OssOutcome(*values) for values in zip(*of_servers, strict=True)),
            ost_cost=quality.ost_cost(dict(enumerate(own.tolist()))),
            read_bytes_per_s=rates[Direction.READ],
            write_bytes_per_s=rates[Direction.WRITE],
            events=events,
        )
