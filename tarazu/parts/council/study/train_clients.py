"""Make `clients.json`, what is known of clients: `python -m tarazu.parts.council.study.train_clients TABLE [--write]`.

The table (tests/data/evidence/client-pairs.csv) has the throughput of 12 workloads under 99 pairs of `osc_rpcs`, with
the means of even and odd runs. A gain is drawn toward none by as much as the two halves differ.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.parts.council.detect import clients
from tarazu.parts.council.detect.clients import AtPair, ClientsOrigin, KnownWorkload, KnownWorkloads
from tarazu.parts.council.values.client import RpcPair

FILE = Path(clients.__file__).with_name(clients.FILE)
STARTS = (RpcPair(1024, 8), RpcPair(256, 8))
"""Pairs that a client has by default, by its servers' `brw_size`."""
USUAL = 0.1
"""Standard deviation of gains (natural logarithm) before any were seen."""
ORIGIN = ClientsOrigin(
    "python -m tarazu.parts.council.study.train_clients tests/data/evidence/client-pairs.csv --write",
    "github.com/DIR-LAB/VertoIO, dataset/",
    "b203389",
    "MIT",
    "240 splits of 12 workloads into halves: make bench-evidence BENCH_ARGS='--only client'",
)


class ClientPair(NamedTuple):
    """One workload under one pair."""

    even: float
    odd: float
    """Throughput, MB/s, of even and of odd runs."""
    call_kib: float
    rpc_kib: float
    in_flight: float

    @property
    def mb_s(self) -> float:
        return (self.even + self.odd) / 2


ClientTable = dict[str, dict[RpcPair, ClientPair]]


def table(path: Path) -> ClientTable:
    """Workload → pair → what it gave. Raises OSError, ValueError."""
    made: ClientTable = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            pair = RpcPair(int(line["pages"]), int(line["rpcs"]))
            numbers = (float(line[name]) for name in "mb_s_even mb_s_odd call_kib rpc_kib in_flight".split())
            made.setdefault(line["workload"], {})[pair] = ClientPair(*numbers)
    return made


def trained(measured: ClientTable, on: Collection[str]) -> KnownWorkloads:
    """Knows these workloads and no other."""
    pairs = next(iter(measured.values()))
    pages, rpcs = sorted({pair.pages for pair in pairs}), sorted({pair.rpcs for pair in pairs})
    return KnownWorkloads(
        tuple(pages),
        tuple(rpcs),
        tuple(
            KnownWorkload(
                name,
                "read" if "_r_" in name else "write",
                of[STARTS[0]].call_kib,
                {str(pair): AtPair(of[pair].rpc_kib, of[pair].in_flight) for pair in STARTS},
                tuple(tuple(row) for row in _gains(of, pages, rpcs)),
            )
            for name, of in measured.items()
            if name in on
        ),
        ORIGIN,
    )


def _gains(of: dict[RpcPair, ClientPair], pages: list[int], rpcs: list[int]) -> list[list[float]]:
    start = of[STARTS[0]]
    halves = [
        math.log(pair.even / start.even) - math.log(pair.odd / start.odd)
        for each, pair in of.items()
        if each != STARTS[0]
    ]
    noise2 = statistics.fmean(half**2 for half in halves) / 4  # of the mean of two halves
    share = USUAL**2 / (USUAL**2 + noise2)
    return [[round(share * math.log(of[RpcPair(p, r)].mb_s / start.mb_s), 3) for r in rpcs] for p in pages]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.parts.council.study.train_clients",
        description="Make what is known of clients from a table of throughputs under pairs of osc_rpcs.",
        epilog="example: python -m tarazu.parts.council.study.train_clients "
        "tests/data/evidence/client-pairs.csv --write",
    )
    parser.add_argument("table", type=Path, help="client-pairs.csv")
    parser.add_argument("--write", action="store_true", help=f"write it ({FILE})")
    options = parser.parse_args(words)
    try:
        measured = table(options.table)
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"{options.table}: expected a table of throughputs ({error})")
    known = trained(measured, measured)
    for workload in known.workloads:
        at = workload.at[str(STARTS[0])]
        print(f"{workload.name:16} RPCs of {at.rpc_kib:6.0f} KiB, {at.in_flight:5.1f} in flight")
    if options.write:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=0) + b"\n")
        print(f"{FILE}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
