"""Node selection in a replay, as it would be at a site: what is known of an application is what its jobs have done."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.parts.bursts.measures.applications import ApplicationCharacter, of_jobs
from tarazu.parts.bursts.measures.characteristics import Character, of_nodes
from tarazu.parts.bursts.nodes.selection import Left, SelectionOptions, Wish, choose, loads
from tarazu.parts.bursts.nodes.slurm_fit import Flags, Indices
from tarazu.parts.bursts.study.queue import Queue
from tarazu.parts.bursts.study.replay import BACKFILL, Slurms
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Bytes
from tarazu.sim.kernel.fluid import Floats

GROWTH = 1.25
"""An application is looked at again when so many times the jobs have ended as at the last time."""


class SelectorPolicy(msgspec.Struct, frozen=True):
    """Of a replay."""

    name: str
    options: SelectionOptions | None
    """None: Slurm's own choice always."""
    fit: str = "tree"
    """Slurm's own choice."""
    even_node: bool = False
    """What is known of an application's traffic on its nodes is not used (S 6.4.1)."""
    loads: bool = False
    """Where data-intensive jobs run is known: I/O nodes that serve fewer of them come first."""


OWN = SelectorPolicy("Slurm's own (topology/tree)", None)
CONSECUTIVE = SelectorPolicy("Slurm's own (no topology)", None, "consecutive")
RECOMMENDED = SelectorPolicy("even traffic, span, loads known", SelectionOptions(), loads=True)
"""What tarazu-burstd does."""
POLICIES = (
    OWN,
    CONSECUTIVE,
    SelectorPolicy("even node, span", SelectionOptions(), even_node=True),
    SelectorPolicy("even traffic, span", SelectionOptions()),
    RECOMMENDED,
)


class Learned:
    """Characters of applications by the jobs of them that have ended."""

    def __init__(self, queue: Queue, parts: Sequence[Floats]) -> None:
        self._queue, self._parts = queue, parts
        count = len(queue.applications)
        self._characters: list[list[Character]] = [[] for _ in range(count)]
        self._moved: list[list[Bytes]] = [[] for _ in range(count)]
        self._due = [6.0] * count
        self._found: list[ApplicationCharacter | None] = [None] * count

    def ended(self, job: int) -> None:
        queue, at = self._queue, int(self._queue.application[job])
        moved = np.rint(self._parts[job] * queue.volume[job]).astype(np.int64)
        self._characters[at].append(of_nodes(moved, None, int(queue.network[job])))
        self._moved[at].append(moved)
        known = len(self._moved[at])
        if known >= self._due[at]:
            self._found[at] = of_jobs(self._characters[at], self._moved[at])
            self._due[at] = GROWTH * known

    def of(self, job: int) -> ApplicationCharacter | None:
        """Of its application; None: too few of its jobs have ended."""
        return self._found[int(self._queue.application[job])]

    def optimizable(self, job: int) -> bool:
        character = self.of(job)
        return character is not None and character.optimizable


class Chosen:
    """Nodes for optimizable jobs by `tarazu.parts.bursts.nodes`, Slurm's own choice for others."""

    def __init__(
        self, machine: Machine, queue: Queue, parts: Sequence[Floats], policy: SelectorPolicy
    ) -> None:
        self._machine, self._queue, self._policy = machine, queue, policy
        self._learned = Learned(queue, parts)
        self._slurms = Slurms(machine, queue.size, policy.fit)
        self._asked: dict[int, Floats] = {}
        """Of running data-intensive jobs, (I/O nodes,): the part of each that they are expected to carry."""
        self._load = np.zeros(len(machine.io_nodes))
        self.chosen = np.zeros(len(queue), dtype=np.bool_)
        """(jobs,): its nodes are not Slurm's own choice."""
        self.optimizable = np.zeros(len(queue), dtype=np.bool_)
        """(jobs,): known to be, when it started."""

    def nodes(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices:
        allocation = self._choose(idle, job, waiting) if self._policy.options else None
        if allocation is None:
            allocation = self._slurms.nodes(idle, job, waiting)
        if self._policy.loads:
            self._expect(job, allocation)
        return allocation

    def ended(self, job: int) -> None:
        self._learned.ended(job)
        asked = self._asked.pop(job, None)
        if asked is not None:
            self._load = np.maximum(self._load - asked, 0.0)

    def _choose(self, idle: Flags, job: int, waiting: Sequence[int]) -> Indices | None:
        options, known = self._policy.options, self._learned.of(job)
        if options is None or known is None or not self._learned.optimizable(job):
            return None
        self.optimizable[job] = True
        if known.nodes < 2 * options.per_io_node:
            return None
        following = next((j for j in waiting[:BACKFILL] if self._learned.optimizable(j)), None)
        size = None if following is None else int(self._queue.size[following])
        load = self._load if self._policy.loads else None
        wish = Wish(known.nodes, None if self._policy.even_node else known.shares, size)
        choice = choose(self._machine, idle, wish, options, load)
        if isinstance(choice, Left):
            return None
        self.chosen[job] = True
        return np.array(choice.nodes, dtype=np.int64)

    def _expect(self, job: int, nodes: Indices) -> None:
        known = self._learned.of(job)
        if known is not None and known.intensive.expected:
            self._asked[job] = loads(self._machine, nodes, known.shares)
            self._load += self._asked[job]
