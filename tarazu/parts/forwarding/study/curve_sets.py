"""Sets of bandwidth curves to study policies with: paper A's own over I/O nodes, over OSTs generated.

**Published** are the measured curves over I/O nodes behind paper A's figure 1: 189 access patterns on MareNostrum 4
(Bez et al., PDSW 2020), from the public repository jeanbez/forge-evaluation (commit 42c44d0f,
`run/output/*/results/results.csv`). That repository names no licence: figures alone were taken. `marenostrum4.csv` has
a row for each pattern: nodes, processes, files (`per-process` or `shared`), access (`contiguous` or `strided`),
request_kib; and io_nodes_N, the MB/s of every repetition (mostly five), ascending, a space between two. Writes with
O_DIRECT, each run stopped after 60 s of at most 128 GiB. io_nodes_0 is no forwarding, straight to GPFS. It is no point
of a curve: in the paper's model all I/O goes through the resources (3.1), a policy gives one or more, and 5.3 draws
volumes from b(1).

**Generated** are those over OSTs: the paper's 301 configurations of IOR on PlaFRIM's OSTs (figure 2, with 1 to 8) are
not to be had here. Its text gives how many, the numbers of resources and the four shapes. It gives no proportions and
no heights: those are only drawn. What is generated therefore rests on these assumptions, and so does every figure that
is made with it. There is such a set for I/O nodes too, which says how much of a figure comes from the shapes of the 189
measured curves:

- Numbers of resources: 1, 2, 4, 8 for I/O nodes (not 0, no forwarding: a policy gives 1 or more); 1 … 8 for OSTs.
- Proportions (`SHARES`), ours: for I/O nodes Ascent 45 %, Peak 25 %, Neutral 20 %, Descent 10 %: all four are seen, and
  forwarding by more nodes helps more often than it hurts. For OSTs Ascent 60 %, Neutral 20 %, Peak 15 %, Descent 5 %:
  section 2 reports "the more, the better" of one study on that system, "little or no impact" of another, and decline as
  what a third one saw on another system.
- Heights: Ascent n^a, a from 0.2 to 1.1 (8 resources give 1.5 to 10 times as much; a few curves gain more than in
  proportion); Descent n^-a, a from 0.1 to 0.6; Peak up by n^a to a number between the ends, a from 0.2 to 1.1, and down
  from there by n^-c, c from 0.2 to 0.8; Neutral level. On top each point is off by 3 % (standard deviation of its
  logarithm), Neutral by 1.5 %.
- Repetitions: five a point (as in paper E's experiments), whose spread is 2 to 15 % of an application's bandwidth, the
  same at its every point (E reports standard deviations between 0.4 and 25 %).
- Level: bandwidth with one resource is 100 MB/s to 2 GB/s, uniform in its logarithm (E's figures 3 to 6 lie between
  0.2 and 20 GB/s). Of all policies only MCKP, which adds bandwidths of different applications, depends on it.

Every curve that `classify` would tell into another family than the one it was drawn for is drawn again, so the
proportions hold as stated.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from random import Random

import msgspec

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.parts.forwarding.study.families import Family, classify
from tarazu.units import KIB

PUBLISHED = "189 curves over I/O nodes measured on MareNostrum 4 (jeanbez/forge-evaluation 42c44d0f)"
SHARES: dict[Kind, dict[Family, int]] = {
    "io-node": {"ascent": 85, "peak": 47, "neutral": 38, "descent": 19},
    "ost": {"ascent": 181, "neutral": 60, "peak": 45, "descent": 15},
}
"""How many curves of each family: 189 and 301."""
NUMBERS: dict[Kind, tuple[int, ...]] = {"io-node": (1, 2, 4, 8), "ost": (1, 2, 3, 4, 5, 6, 7, 8)}
REPETITIONS = 5
SEED = 9549
GENERATED = "generated curves (assumptions: docs/forwarding.md), not the paper's measurements"


class PublishedCurve(msgspec.Struct, frozen=True):
    """One access pattern."""

    nodes: int
    processes: int
    shared: bool
    """One file, not one a process."""
    strided: bool
    request_bytes: int
    curve: Curve

    @property
    def name(self) -> str:
        sharing = "shared" if self.shared else "per-process"
        access = "strided" if self.strided else "contiguous"
        return f"{sharing}-{access}-{self.request_bytes // KIB}k-{self.processes}p-{self.nodes}n"


def published_text() -> str:
    """The file of the published curves."""
    return (files("tarazu.parts.forwarding.study") / "marenostrum4.csv").read_text(encoding="utf-8")


@cache
def published() -> tuple[PublishedCurve, ...]:
    """In the file's order."""
    return tuple(_of(row) for row in csv.DictReader(published_text().splitlines()))


def _of(row: dict[str, str]) -> PublishedCurve:
    return PublishedCurve(
        int(row["nodes"]),
        int(row["processes"]),
        row["files"] == "shared",
        row["access"] == "strided",
        int(row["request_kib"]) * KIB,
        curve((n, 1e6 * float(value)) for n in NUMBERS["io-node"] for value in row[f"io_nodes_{n}"].split()),
    )


def standard(kind: Kind) -> tuple[Curve, ...]:
    """What studies use without more being asked for: measured curves where there are any."""
    return tuple(of.curve for of in published()) if kind == "io-node" else generated(kind)


@cache
def generated(kind: Kind) -> tuple[Curve, ...]:
    """189 curves over I/O nodes or 301 over OSTs, in the order of their families; always the same."""
    random = Random(f"{kind} {SEED}")
    return tuple(
        _drawn(random, family, NUMBERS[kind]) for family, count in SHARES[kind].items() for _ in range(count)
    )


def _drawn(random: Random, family: Family, numbers: tuple[int, ...]) -> Curve:
    while True:
        level = 10 ** random.uniform(8, 9.3)
        off = 0.015 if family == "neutral" else 0.03
        heights = [h * random.lognormvariate(0, off) for h in _shape(random, family, numbers)]
        repeated = random.uniform(0.02, 0.15)
        drawn = curve(
            (n, level * height / heights[0] * random.lognormvariate(0, repeated))
            for n, height in zip(numbers, heights, strict=True)
            for _ in range(REPETITIONS)
        )
        if classify(drawn) == family:
            return drawn


def _shape(random: Random, family: Family, numbers: tuple[int, ...]) -> list[float]:
    if family == "neutral":
        return [1.0] * len(numbers)
    if family == "descent":
        fall = random.uniform(0.1, 0.6)
        return [float(n**-fall) for n in numbers]
    rise = random.uniform(0.2, 1.1)
    top = numbers[-1] if family == "ascent" else random.choice(numbers[1:-1])
    fall = random.uniform(0.2, 0.8)
    return [float(min(n, top) ** rise * (max(n, top) / top) ** -fall) for n in numbers]
