"""The cells of `make bench-time`: programs × layouts × limits × fills × systems × one and three jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.sim.model import presets
from tarazu.sim.model.spec import ClusterSpec, Job
from tarazu.sim.workloads import hacc, ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import GIB

LAYOUTS = {
    "plain": "-c 8 -S 1M",
    "pfl-1": "-E 128M -c 1 -S 1M -E 512M -c 3 -E 2G -c 8 -E -1 -c 16",
    "pfl-2": "-E 128M -c 1 -S 1M -E 2G -c 12 -E -1 -c 32",
}
"""Of the site's directories: 8 stripes and the paper's table 8, with stripes of 1 MiB."""
FILLS = {"empty": (0.0, 0.0), "0-15 %": (0.0, 0.15), "0-25 %": (0.0, 0.25), "0-50 %": (0.0, 0.5)}
OST_BYTES = 100 * 10**9
SEGMENTS, FEW_SEGMENTS = 16, 4
"""Of each rank's file: so many operations; in large systems fewer, so that a cell takes seconds."""


class Cell(NamedTuple):
    """One combination; `spec` without its fill, which a seed deals to the OSTs."""

    osts: int
    program: str
    layout: str
    limit: str
    fill: str
    jobs: tuple[tuple[Workload, float], ...]
    """Each with its start in seconds."""
    spec: ClusterSpec

    @property
    def name(self) -> str:
        return f"{self.osts} OSTs, {self.program}, {self.layout}, {self.limit}, {self.fill}"

    def cluster(self, seed: int) -> ClusterSpec:
        low, high = FILLS[self.fill]
        used = np.random.default_rng([seed, self.osts]).permutation(np.linspace(low, high, self.osts))
        return msgspec.structs.replace(self.spec, used=tuple(used.tolist()))

    def played(self) -> list[Job]:
        node, found = 0, []
        for work, start_s in self.jobs:
            found.append(Job(work, striping=LAYOUTS[self.layout], start_s=start_s, first_node=node))
            node += work.nodes
        return found


def cells(short: bool = False) -> list[Cell]:
    found = [*_paper(), *_large()]
    return found[::24] if short else found


def _paper() -> Iterator[Cell]:
    """35 OSTs on 7 servers, where links or disks are the limit."""
    paper = msgspec.structs.replace(
        presets.named("paper").spec,
        ost_bytes=OST_BYTES,
        nodes=8,
        nic_bytes_per_s=10e9,
        lnet_router_bytes_per_s=math.inf,
    )
    limits = {"links": paper, "disks": msgspec.structs.replace(paper, oss_link_bytes_per_s=10e9)}
    programs = {
        "IOR 16 x 2 GiB": ((_ior(16, 2), 0.0),),
        "IOR 16 x 8 GiB": ((_ior(16, 8), 0.0),),
        "HACC-IO 8 x 50 M": ((hacc.workload(ranks=8, ranks_per_node=4, particles=50_000_000), 0.0),),
        "HACC-IO 16 x 20 M": ((hacc.workload(ranks=16, particles=20_000_000), 0.0),),
        "IOR shared 16 GiB": ((_ior(8, 2, shared=True), 0.0),),
        "three jobs": (
            (_ior(16, 2), 0.0),
            (hacc.workload(ranks=8, ranks_per_node=4, particles=50_000_000), 4.0),
            (_ior(8, 4, name="later"), 9.0),
        ),
    }
    for program, jobs in programs.items():
        for layout in LAYOUTS:
            for limit, spec in limits.items():
                for fill in FILLS:
                    yield Cell(35, program, layout, limit, fill, jobs, spec)


def _large() -> Iterator[Cell]:
    scaling = msgspec.structs.replace(
        presets.named("scaling").spec,
        ost_bytes=10 * OST_BYTES,
        nic_bytes_per_s=50e9,
        io_router_bytes_per_s=math.inf,
    )
    for osts, ranks, size in ((480, 64, 2), (3_600, 256, 2)):
        disks = msgspec.structs.replace(scaling, osts=osts)
        limits = {"links": msgspec.structs.replace(disks, oss_link_bytes_per_s=2e9), "disks": disks}
        programs = {
            f"IOR {ranks} x {size} GiB": ((_ior(ranks, size, per_node=8, segments=FEW_SEGMENTS), 0.0),),
            "HACC-IO": ((hacc.workload(ranks=ranks, particles=20_000_000), 0.0),),
            "three jobs": (
                (_ior(ranks, size, per_node=8, segments=FEW_SEGMENTS), 0.0),
                (hacc.workload(ranks=ranks // 2, particles=20_000_000), 1.0),
                (_ior(ranks // 2, size, per_node=8, segments=FEW_SEGMENTS, name="later"), 2.0),
            ),
        }
        for program, jobs in programs.items():
            for layout in LAYOUTS:
                for limit, spec in limits.items():
                    for fill in (
                        ("empty", "0-15 %", "0-25 %") if osts == 480 else ("empty", "0-25 %", "0-50 %")
                    ):
                        yield Cell(osts, program, layout, limit, fill, jobs, spec)


def _ior(
    ranks: int,
    gib: int,
    *,
    shared: bool = False,
    per_node: int = 0,
    segments: int = SEGMENTS,
    name: str = "ior",
) -> Workload:
    segments = 1 if shared else segments
    return ior.workload(
        ranks=ranks,
        ranks_per_node=per_node or max(1, ranks // 2),
        block_bytes=gib * GIB // segments,
        segments=segments,
        shared=shared,
        interface="MPIIO" if shared else "POSIX",
        name=name,
    )
