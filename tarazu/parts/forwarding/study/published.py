"""The measured curves over I/O nodes behind paper A's figure 1: 189 access patterns on MareNostrum 4 (Bez et al., PDSW
2020), from the public repository jeanbez/forge-evaluation (commit 42c44d0f, `run/output/*/results/results.csv`).

That repository names no licence: figures alone were taken. `marenostrum4.csv` has a row for each pattern: nodes,
processes, files (`per-process` or `shared`), access (`contiguous` or `strided`), request_kib; and io_nodes_N, the MB/s
of every repetition (mostly five), ascending, a space between two. Writes with O_DIRECT, each run stopped after 60 s of
at most 128 GiB.

io_nodes_0 is no forwarding, straight to GPFS. It is no point of a curve: in the paper's model all I/O goes through the
resources (3.1), a policy gives one or more, and 5.3 draws volumes from b(1).
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

import msgspec

from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.units import KIB

SOURCE = "jeanbez/forge-evaluation 42c44d0f"
NOTE = f"189 curves over I/O nodes measured on MareNostrum 4 ({SOURCE})"
NUMBERS = (1, 2, 4, 8)
_MB = 1e6


class PublishedCurve(msgspec.Struct, frozen=True):
    """One access pattern."""

    nodes: int
    processes: int
    shared: bool
    """One file, not one a process."""
    strided: bool
    request_bytes: int
    curve: Curve
    direct_bytes_per_s: tuple[float, ...]
    """Without forwarding, each repetition."""

    @property
    def name(self) -> str:
        sharing = "shared" if self.shared else "per-process"
        access = "strided" if self.strided else "contiguous"
        return f"{sharing}-{access}-{self.request_bytes // KIB}k-{self.processes}p-{self.nodes}n"


def text() -> str:
    """The file."""
    return (files("tarazu.parts.forwarding.study") / "marenostrum4.csv").read_text(encoding="utf-8")


@cache
def published() -> tuple[PublishedCurve, ...]:
    """In the file's order."""
    return tuple(_of(row) for row in csv.DictReader(text().splitlines()))


def _of(row: dict[str, str]) -> PublishedCurve:
    def rates(number: int) -> list[float]:
        return [_MB * float(value) for value in row[f"io_nodes_{number}"].split()]

    return PublishedCurve(
        int(row["nodes"]),
        int(row["processes"]),
        row["files"] == "shared",
        row["access"] == "strided",
        int(row["request_kib"]) * KIB,
        curve((n, value) for n in NUMBERS for value in rates(n)),
        tuple(rates(0)),
    )
