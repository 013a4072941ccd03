"""A generated machine and its days: a queue with the published proportions, replayed as by Slurm, and its traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.published import HARDWARE, Name
from tarazu.parts.bursts.study import traffic
from tarazu.parts.bursts.study.generator import JOBS, SEED, queue
from tarazu.parts.bursts.study.knobs import Knobs
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.study.replay import Replayed, replay
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Traffic

WARM_S = 12 * 3600
"""Before, jobs still stand as they were put onto an empty machine."""


@dataclass(frozen=True, eq=False)
class BurstSystem:
    name: Name
    machine: Machine
    """Of contiguous mapping: an I/O node a cabinet."""
    queue: Queue
    replayed: Replayed

    @property
    def end_s(self) -> int:
        """When the last job has ended, to a whole hour."""
        return int(-(-float(self.replayed.end_s.max()) // 3600) * 3600)

    @property
    def steady_s(self) -> tuple[int, int]:
        """When the machine is warm, and jobs are still submitted."""
        last = int(self.queue.submit_s[-1]) // 3600 * 3600
        return min(WARM_S, last // 3 // 3600 * 3600), max(last, 3600)

    def traffic(self, begin_s: int, until_s: int) -> Iterator[Traffic]:
        history = self.replayed
        return traffic.traffic(
            self.name,
            self.queue,
            self.machine,
            history.start_s,
            history.end_s,
            history.nodes,
            begin_s,
            until_s,
        )

    def jobs(self) -> list[Job]:
        names, history = self.machine.nodes, self.replayed
        return [
            self.queue.batch_job(
                job,
                tuple(names[i] for i in history.nodes[job].tolist()),
                float(history.start_s[job]),
                float(history.end_s[job]),
            )
            for job in range(len(self.queue))
        ]


def generate(
    name: Name,
    jobs: int = JOBS,
    seed: int = SEED,
    knobs: Knobs | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> BurstSystem:
    machine = HARDWARE[name].machine()
    made = queue(name, jobs, seed, knobs)
    progress(f"{name}: {jobs:,} jobs are placed")
    return BurstSystem(name, machine, made, replay(machine, made))
