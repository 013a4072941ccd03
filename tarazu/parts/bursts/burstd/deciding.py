"""Which nodes a job should get, or why it is left to Slurm: of what is known of its application, and of idle nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tarazu.batch.jobs import ApplicationKey, Job, Waiting
from tarazu.batch.node_set import fold
from tarazu.batch.slurm import View
from tarazu.parts.bursts.burstd.answering import AboutJob
from tarazu.parts.bursts.measures.applications import ApplicationCharacter
from tarazu.parts.bursts.nodes.selection import Floats, NodeChoice, SelectionOptions, Wish, choose, loads
from tarazu.parts.bursts.nodes.slurm_fit import FITS
from tarazu.parts.bursts.settings import Bursts
from tarazu.parts.bursts.traffic.machine import Machine

STALE_S = 60.0
"""What Slurm said longer ago says nothing of its nodes."""

Flags = npt.NDArray[np.bool_]


Knowledge = Callable[[ApplicationKey], ApplicationCharacter | None]
"""What is known of an application; None where too few of its jobs are. Answers from memory, at once."""


class Site(NamedTuple):
    """What a decision is made of; none of it changes."""

    machine: Machine
    places: dict[str, int]
    """Name → its place in `machine.nodes`."""
    by_topology: bool
    """Slurm has leaf switches, and fills them."""
    view: View
    free: dict[str, Flags]
    """Partition → (nodes of the machine,): idle ones, of which Slurm could give some to a job of it now."""
    load: Floats | None = None
    """(I/O nodes,): how much of data-intensive jobs that run each serves."""


class Decision(NamedTuple):
    nodes: tuple[str, ...]
    """None: left to Slurm."""
    why: str
    io_nodes: int = 0
    strategy: str = ""

    @property
    def folded(self) -> str:
        return fold(self.nodes)


def site_of(
    machine: Machine,
    by_topology: bool,
    view: View,
    running: Iterable[Job] = (),
    knowledge: Knowledge = lambda _: None,
) -> Site:
    places = {name: i for i, name in enumerate(machine.nodes)}
    free = {name: _flags(places, partition.idle) for name, partition in view.partitions.items()}
    return Site(machine, places, by_topology, view, free, _load(machine, places, running, knowledge))


def _flags(places: dict[str, int], names: Iterable[str]) -> Flags:
    flags = np.zeros(len(places), dtype=np.bool_)
    flags[[places[name] for name in names if name in places]] = True
    return flags


def _load(machine: Machine, places: dict[str, int], running: Iterable[Job], knowledge: Knowledge) -> Floats:
    """A spread job waits for the slowest of its I/O nodes: those that serve others that do much I/O come last."""
    load = np.zeros(len(machine.io_nodes))
    for job in running:
        known = knowledge(job.application)
        at = [places[name] for name in job.nodes if name in places]
        if known is not None and known.intensive.expected and len(at) == len(job.nodes):
            load += loads(machine, at, known.shares)
    return load


def expected(knowledge: Knowledge, application: ApplicationKey) -> tuple[ApplicationCharacter | None, str]:
    """What its next job will be like, if other nodes would be good for it; else why it is left alone."""
    character = knowledge(application)
    if character is None:
        return None, "not enough jobs of this application are known"
    if character.optimizable:
        return character, ""
    return None, "one node does its I/O" if character.intensive.expected else "not data-intensive"


def decide(
    asked: AboutJob,
    site: Site,
    knowledge: Knowledge,
    options: Bursts,
    taken: Iterable[str] = (),
) -> Decision:
    """`taken`: idle nodes that were just asked for, for others."""
    application = ApplicationKey(asked.user, asked.name, asked.nodes)
    character, why = expected(knowledge, application)
    if character is None:
        return Decision((), why)
    if asked.waits:
        return Decision((), "it does not start now")
    if time.monotonic() - site.view.seen > STALE_S:
        return Decision((), "the state of Slurm's nodes is unknown")
    name = asked.partition or site.view.default
    partition = site.view.partitions.get(name)
    if partition is None:
        return Decision((), "its partition is unknown")
    if partition.kinds != 1:
        # Whether all that a job asks for can be had on the nodes chosen only Slurm knows: it would refuse the job.
        return Decision((), f"its partition has {partition.kinds} kinds of nodes")
    wish = Wish(asked.nodes, character.shares, next_optimizable(site.view.queue, knowledge))
    fit = "tree" if site.by_topology else "consecutive"
    chosen = choose(
        site.machine,
        idle(site, name, taken),
        wish,
        SelectionOptions(per_io_node=options.per_io_node, fit=fit),
        site.load,
    )
    if not isinstance(chosen, NodeChoice):
        return Decision((), chosen.why)
    names = tuple(site.machine.nodes[i] for i in chosen.nodes)
    return Decision(names, chosen.why, chosen.io_nodes, chosen.strategy)


def by_slurm(asked: AboutJob, site: Site, taken: Iterable[str] = ()) -> list[str]:
    """Nodes that a job which is left to Slurm will probably get, if it starts now."""
    name = asked.partition or site.view.default
    if name not in site.view.partitions or asked.waits:
        return []
    fit = FITS["tree" if site.by_topology else "consecutive"]
    own = fit(site.machine, idle(site, name, taken), asked.nodes)
    return [] if own is None else [site.machine.nodes[i] for i in own.tolist()]


def idle(site: Site, partition: str, taken: Iterable[str] = ()) -> Flags:
    """(nodes of the machine,): those that Slurm could give to a job of this partition now. Slurm waits for this."""
    flags = site.free[partition].copy()
    flags[[site.places[name] for name in taken if name in site.places]] = False
    return flags


def next_optimizable(queue: Iterable[Waiting], knowledge: Knowledge, most: int = 100) -> int | None:
    """Nodes of the pending job with the highest priority that would gain too; None: there is none of the first."""
    pending = (job for job in queue if job.pending)
    for job, _ in zip(pending, range(most), strict=False):
        if expected(knowledge, ApplicationKey(job.user, job.name, job.nodes))[0]:
            return job.nodes
    return None
