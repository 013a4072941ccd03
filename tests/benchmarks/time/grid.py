"""The cells of `make bench-time`: programs × layouts × limits × fills × systems × one and three jobs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu.layout.manager import LayoutPolicy
from tarazu.layout.setstripe import format_layout
from tarazu.sim.model import presets, striping
from tarazu.sim.model.spec import ClusterSpec, Job
from tarazu.sim.workloads import hacc, ior
from tarazu.sim.workloads.workload import Workload
from tarazu.units import GIB, MIB

LAYOUTS = {
    "plain": "-c 8 -S 1M",
    "pfl-1": "-E 128M -c 1 -S 1M -E 512M -c 3 -E 2G -c 8 -E -1 -c 16",
    "pfl-2": "-E 128M -c 1 -S 1M -E 2G -c 12 -E -1 -c 32",
}
"""Of the site's directories: 8 stripes and the paper's table 8, with stripes of 1 MiB."""
LARGE_STRIPES, AUTO = "-c 8 -S 4M", "auto"
"""Of 35 OSTs also 8 stripes of 4 MiB; and `layout.stripe_count = auto` beside Lustre's own with 8 of 1 MiB."""
FILLS = {"empty": (0.0, 0.0), "0-15 %": (0.0, 0.15), "0-25 %": (0.0, 0.25), "0-50 %": (0.0, 0.5)}
PAPER_OSTS = 35
OST_BYTES = 100 * 10**9
FIRST_SEED = int(os.environ.get("BENCH_TIME_SEED", "0"))
"""Another one: other fills, other draws."""
SEGMENTS, FEW_SEGMENTS = 16, 4
"""Of each rank's file: so many operations; in large systems fewer, so that a cell takes seconds."""


class Cell(NamedTuple):
    """One combination; `spec` without its fill, which a seed deals to the OSTs."""

    osts: int
    program: str
    layout: str
    limit: str
    fill: str
    """A name of `FILLS`."""
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

    @property
    def auto(self) -> bool:
        return self.layout == AUTO

    def played(self, policy: str = "lsa") -> list[Job]:
        """Where the stripe count is automatic, only tarazu chooses it."""
        node, found = 0, []
        for work, start_s in self.jobs:
            striping = LAYOUTS.get(self.layout, self.layout)
            if self.auto:
                striping = _chosen(work, self.osts) if policy == "tarazu" else LAYOUTS["plain"]
            found.append(Job(work, striping=striping, start_s=start_s, first_node=node))
            node += work.nodes
        return found


def _chosen(work: Workload, osts: int) -> str:
    """The options of `lfs setstripe` that `layout.stripe_count = auto` comes to for files that are all alike."""
    default = striping.rule(LAYOUTS["plain"]).default
    rule = striping.StripingRule(AUTO, LayoutPolicy(stripe_count="auto", min_size_bytes=0), default)
    shared = len(work.files) == 1
    wanted = [striping.Expected(f.size_bytes, work.ranks if shared else 1) for f in work.files]
    (found,) = set(striping.layouts(rule, wanted, osts))
    return format_layout(found)


def cells(short: bool = False) -> list[Cell]:
    found = [*_paper(), *_large()]
    return found[::32] if short else found


def drawn(count: int, seed: int) -> list[Cell]:
    """Cells of programs, layouts, limits and stripe sizes that nothing was tuned on."""
    return [_drawn(Random(seed * 7919 + n), n) for n in range(count)]


def _drawn(random: Random, number: int) -> Cell:
    ranks, stripe = random.randint(3, 24), random.choice((1, 1, 4))
    kind = random.choice(("IOR", "IOR", "HACC-IO", "IOR shared"))
    if kind == "HACC-IO":
        work = hacc.workload(ranks=ranks, ranks_per_node=6, particles=random.randint(3, 60) * 10**6)
    else:
        work = ior.workload(
            ranks=ranks,
            ranks_per_node=6,
            block_bytes=random.randint(1, 16) * GIB // 64,
            segments=1 if kind == "IOR shared" else random.choice((1, 2, 8)),
            shared=kind == "IOR shared",
            interface="MPIIO" if kind == "IOR shared" else "POSIX",
        )
    ends = sorted(random.sample((64, 128, 256, 512, 1024), 2))
    layout = random.choice(
        (
            f"-c {random.randint(1, 12)} -S {stripe}M",
            f"-E {ends[0]}M -c 1 -S {stripe}M -E {ends[1]}M -c 4 -E -1 -c 11",
            AUTO,
        )
    )
    limit = random.choice(("links", "disks"))
    fill = random.choice(tuple(FILLS))
    program = f"{kind} {ranks} x {work.files[0].size_bytes / MIB:.0f} MiB ({number})"
    return Cell(PAPER_OSTS, program, layout, limit, fill, ((work, 0.0),), _limits()[limit])


def _limits() -> dict[str, ClusterSpec]:
    paper = msgspec.structs.replace(
        presets.named("paper").spec,
        ost_bytes=OST_BYTES,
        nodes=8,
        nic_bytes_per_s=10e9,
        lnet_router_bytes_per_s=math.inf,
    )
    return {"links": paper, "disks": msgspec.structs.replace(paper, oss_link_bytes_per_s=10e9)}


def _paper() -> Iterator[Cell]:
    """35 OSTs on 7 servers, where links or disks are the limit."""
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
        for layout in (*LAYOUTS, LARGE_STRIPES, *[AUTO] * (len(jobs) == 1)):
            for limit, spec in _limits().items():
                for fill in FILLS:
                    yield Cell(PAPER_OSTS, program, layout, limit, fill, jobs, spec)


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
