"""Remapping on generated systems (spatially-bursty-io, 7.4): each mapping judged on days that it was not learned on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import numpy as np

from tarazu.parts.bursts.mapping.history import learn
from tarazu.parts.bursts.mapping.judge import judge
from tarazu.parts.bursts.mapping.simple import contiguous, moved, round_robin
from tarazu.parts.bursts.mapping.together import MappingOptions, together
from tarazu.parts.bursts.measures.published import Name
from tarazu.parts.bursts.study.system import BurstSystem
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

LEARNED = 0.6
"""Of the steady time, from its beginning; the rest is held out."""
FEW = 0.1
"""Of the nodes, that the mapping which moves few may move."""
LONGEST_S = 60.0
CONTIGUOUS, ROUND_ROBIN, KNOWING, FEW_MOVED = "contiguous", "i % n", "learned", "learned, a tenth moved"


class Mapping(msgspec.Struct, frozen=True):
    system: Name
    mapping: str
    moved: int
    """Nodes that get another I/O node than by contiguous mapping."""
    busiest: float
    """Part of the traffic of the busiest 10 % I/O nodes, mean of the held-out intervals."""
    busiest_by_bytes: float
    """The same, each byte counting alike."""
    io_nodes: float
    """That serve the busiest 1 % of the nodes, mean."""
    total: float
    """Part of all held-out bytes that the busiest 10 % I/O nodes carry, in sum: taking turns looks even there."""


class RemapStudy(msgspec.Struct, frozen=True):
    system: Name
    nodes: int
    io_nodes: int
    learned_hours: float
    held_out_hours: float
    mappings: tuple[Mapping, ...]

    def of(self, mapping: str) -> Mapping:
        return next(m for m in self.mappings if m.mapping == mapping)


def study(
    system: BurstSystem, longest_s: float = LONGEST_S, progress: Callable[[str], None] = lambda _: None
) -> RemapStudy:
    """`longest_s`: that each learned mapping may take."""
    begin, until = system.steady_s
    middle = begin + int(LEARNED * (until - begin)) // 3600 * 3600
    nodes, io_nodes = len(system.machine.nodes), len(system.machine.io_nodes)
    present = contiguous(nodes, io_nodes)
    machine = replace(system.machine, served_by=present)
    progress(f"{system.name}: learning from {(middle - begin) // 3600} hours")
    history = learn(system.traffic(begin, middle), machine)
    mappings: dict[str, Numbers] = {CONTIGUOUS: present, ROUND_ROBIN: round_robin(nodes, io_nodes)}
    for name, moves in ((KNOWING, None), (FEW_MOVED, int(FEW * nodes))):
        progress(f"{system.name}: {name}")
        options = MappingOptions(moves=moves, longest_s=longest_s)
        mappings[name] = together(history, machine, present, options)
    progress(f"{system.name}: {(until - middle) // 3600} other hours")
    bytes_ = np.zeros(nodes)

    def counted() -> Iterator[Traffic]:
        for chunk in system.traffic(middle, until):
            np.add(bytes_, np.bincount(chunk.node, chunk.bytes, nodes), out=bytes_)
            yield chunk

    judged = judge(mappings, counted(), machine)
    most = max(1, round(0.1 * io_nodes))
    outcomes = []
    for name, at in mappings.items():
        sums = np.sort(np.bincount(at, bytes_, io_nodes))
        outcomes.append(
            Mapping(
                system.name,
                name,
                moved(present, at),
                judged[name].busiest_share,
                judged[name].busiest_share_of_bytes,
                judged[name].io_nodes_of_busiest,
                float(sums[-most:].sum() / sums.sum()),
            )
        )
    return RemapStudy(
        system.name, nodes, io_nodes, (middle - begin) / 3600, (until - middle) / 3600, tuple(outcomes)
    )
