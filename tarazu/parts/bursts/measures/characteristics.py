"""What a job's I/O was like: of its bytes, and of where its nodes stand (spatially-bursty-io, 3.2, 3.3 and 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tarazu.batch.jobs import Job
from tarazu.parts.bursts.measures.measures import normalised_unevenness
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Bytes, Numbers
from tarazu.units import GIB


class Thresholds(msgspec.Struct, frozen=True):
    rank_0: float = 0.95
    """Of a job's bytes: when one node moves more than this, the others are taken not to do I/O (3.2.1)."""
    uneven: float = 0.05
    """NUD above which a distribution is uneven, of bytes on nodes (3.2.2) and of nodes on cabinets (3.3.2)."""
    intensive: int = 10 * GIB
    """Bytes above which a job is data-intensive; S 6.2 names no number."""
    divergence: float = 0.3
    """Above it, the jobs of an application spread their bytes differently each time (6.3)."""
    jobs: int = 5
    """An application is known when more of its jobs than this are (6.3)."""


@dataclass(frozen=True, eq=False)
class JobBytes:
    """What a job moved."""

    job: Job
    bytes: Bytes
    """(nodes,): read and written, in the order of `job.nodes`."""
    network: int | None = None
    """Bytes besides Lustre's that its nodes sent and received; None: nobody counted them."""


class Character(msgspec.Struct, frozen=True):
    """One job's."""

    nodes: int
    bytes: int
    rank_0: bool
    """One node moved more than 95 %. Neither this nor `all_rank` is true of a job that moved nothing."""
    all_rank: bool
    unevenness: float
    """NUD of bytes on nodes."""
    even: bool
    cabinets: int | None
    """In how many it stands; None where that is not known of each of its nodes."""
    least_cabinets: int | None
    """How few could hold so many nodes, were they empty."""
    cabinets_even: bool | None
    """By the number of its nodes in each cabinet in which it stands."""
    intensive: bool
    low_communication: bool | None
    """More bytes of I/O than of communication; None where communication is not known."""

    @property
    def concentrated(self) -> bool | None:
        """In as few cabinets as can be."""
        return None if self.cabinets is None else self.cabinets == self.least_cabinets

    @property
    def optimizable(self) -> bool:
        """Data-intensive, all ranks, little communication as far as it is known (S 6.2)."""
        return self.intensive and self.all_rank and self.low_communication is not False


class Places:
    """Where nodes stand, found by their names."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.index = {name: i for i, name in enumerate(machine.nodes)}
        sizes = np.bincount(machine.cabinet[machine.cabinet >= 0], minlength=len(machine.cabinets))
        self._room = np.cumsum(np.sort(sizes)[::-1])

    def nodes(self, names: Sequence[str]) -> Numbers:
        """(names,): index into `machine.nodes`, -1 of unknown ones."""
        index = self.index
        return np.fromiter((index.get(name, -1) for name in names), np.int32, len(names))

    def in_cabinets(self, nodes: Numbers) -> Numbers | None:
        """(cabinets in which they stand,): how many of the nodes (index into `machine.nodes`) each has.

        None where not all are known, or there are none.
        """
        if not len(nodes) or nodes.min() < 0:
            return None
        cabinets = self.machine.cabinet[nodes]
        if cabinets.min() < 0:
            return None
        counts = np.bincount(cabinets)
        return counts[counts > 0].astype(np.int32)

    def least_cabinets(self, count: int) -> int:
        """How few cabinets have room for so many nodes: the largest ones."""
        return int(np.searchsorted(self._room, count)) + 1


def character(moved: JobBytes, places: Places | None = None, limits: Thresholds | None = None) -> Character:
    """What a job was like. Raises ValueError for bytes that are not those of its nodes."""
    if moved.bytes.shape != (len(moved.job.nodes),):
        raise ValueError(f"expected bytes of {len(moved.job.nodes)} nodes, found {moved.bytes.shape}")
    at = places.nodes(moved.job.nodes) if places else None
    return of_nodes(moved.bytes, at, moved.network, places, limits)


def of_nodes(
    moved: Bytes,
    nodes: Numbers | None = None,
    network: int | None = None,
    places: Places | None = None,
    limits: Thresholds | None = None,
) -> Character:
    """moved: (nodes,) bytes; nodes: (nodes,) index into the machine's."""
    limits = limits or Thresholds()
    total = int(moved.sum())
    uneven = normalised_unevenness(moved)
    rank_0 = total > 0 and int(moved.max()) > limits.rank_0 * total
    counts = places.in_cabinets(nodes) if places and nodes is not None else None
    standing = None if counts is None else normalised_unevenness(counts)
    return Character(
        nodes=len(moved),
        bytes=total,
        rank_0=rank_0,
        all_rank=total > 0 and not rank_0,
        unevenness=uneven,
        even=uneven <= limits.uneven,
        cabinets=None if counts is None else len(counts),
        least_cabinets=None if counts is None or places is None else places.least_cabinets(len(moved)),
        cabinets_even=None if standing is None else standing <= limits.uneven,
        intensive=total > limits.intensive,
        low_communication=None if network is None else total > network,
    )
