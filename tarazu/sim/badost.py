"""A real job with one sick OST (the example of `tarazu whatif`, Darshan's `sample-badost.darshan`), placed again.

The log: IOR, 2,048 ranks, one file of 256 MiB with one stripe each, on 24 OSTs of a production Lustre. The
bytes are balanced to 0.8 %, yet writing took 728 s instead of about 16 s, because OST 14 wrote 31 MB/s.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import as_file
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from tarazu.allocate import bounds, quality
from tarazu.errors import TraceError
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Ost, SystemView
from tarazu.report import speeds
from tarazu.report.objects import Objects
from tarazu.sim.allocation import policies
from tarazu.trace.darshan import example
from tarazu.trace.darshan import log as logs
from tarazu.trace.darshan.read import read
from tarazu.units import MIB, TIB

SEEDS = 20


class WrittenFile(msgspec.Struct, frozen=True):
    """One file of the log; times in seconds after the start of the job."""

    rank: int
    size_bytes: int
    ost: int
    start_s: float
    """First write began."""
    end_s: float
    """Last write returned."""
    writes: int
    write_s: float
    """Time spent in all its writes."""


class Log(msgspec.Struct, frozen=True):
    files: tuple[WrittenFile, ...]
    stripe_size_bytes: int

    @property
    def completion_s(self) -> float:
        """When the last write returned."""
        return max(f.end_s for f in self.files)


class LoggedOst(msgspec.Struct, frozen=True):
    """One OST in the log, under the model of Lustre's allocator and under ours (medians over the seeds)."""

    ost: int
    write_bytes_per_s: float
    logged_bytes: int
    logged_s: float
    """When its last write returned."""
    lsa_bytes: int
    lsa_s: float
    tarazu_bytes: int
    tarazu_s: float


class BadOstStudy(msgspec.Struct, frozen=True):
    rows: tuple[LoggedOst, ...]
    seeds: int
    logged_s: float
    bound_s: float
    """No placement of these files finishes earlier, at these throughputs."""
    lsa_s: tuple[float, ...]
    """Modelled completion time for each seed."""
    tarazu_s: tuple[float, ...]


def load(path: Path | None = None) -> Log:
    """Read the log, by default the package's example. Raises TraceError for one without POSIX and Lustre records."""
    if path is not None:
        return _written(read(path))
    with as_file(example()) as here:
        return _written(read(here))


def _written(logged: logs.DarshanLog) -> Log:
    if not {"POSIX", "LUSTRE"} <= logged.present.keys():
        raise TraceError(logged.path, "the modules POSIX and LUSTRE", sorted(logged.present))
    posix = logged.accesses[~logged.accesses["stdio"]]
    columns = ("record", "rank", "written_bytes", "writes", "write_start_s", "write_end_s", "write_s")
    written, stripe_size_bytes = [], 0
    for record, rank, size, writes, start, end, write_s in posix[list(columns)].tolist():
        layout = logged.layouts.get(record)
        stripes = layout.osts[0] if layout is not None else ()
        if layout is None or len(stripes) != 1 or len(layout.osts) > 1:
            raise TraceError(logged.path, "files with one stripe each", f"{len(stripes)} stripes")
        written.append(WrittenFile(rank, size, stripes[0], start, end, writes, write_s))
        stripe_size_bytes = max(stripe_size_bytes, layout.layout.components[0].stripe_size_bytes)
    return Log(tuple(written), stripe_size_bytes)


def ost_speeds(log: Log) -> dict[int, float]:
    """Throughput in bytes/s of each OST, as `tarazu.report.speeds.ost_speeds` has it."""
    size = np.array([f.size_bytes for f in log.files], float)
    ost = np.array([f.ost for f in log.files], np.int64)
    writing = speeds.Writing(
        np.array([f.start_s for f in log.files]),
        np.array([f.end_s for f in log.files]),
        np.array([f.write_s for f in log.files]),
    )
    osts = np.unique(ost)
    rates = speeds.ost_speeds(Objects(np.arange(len(ost)), ost, size, size), writing, osts)
    return dict(zip(osts.tolist(), rates.tolist(), strict=True))


def view(log: Log) -> SystemView:
    """The OSTs of the log with their throughput; space and servers, not in it, are equal and one each."""
    osts = tuple(
        Ost(ost, f"oss{ost:02d}", 100 * TIB, 100 * TIB, 100 * TIB, write_bytes_per_s=rate)
        for ost, rate in ost_speeds(log).items()
    )
    return SystemView("badost", 0.0, osts)


def requests(log: Log) -> tuple[CreateRequest, ...]:
    """The files of the log as they would be asked for before the job."""
    one_stripe = Layout((Component(0, EOF, log.stripe_size_bytes or MIB, 1),))
    return tuple(CreateRequest(f.size_bytes, one_stripe) for f in log.files)


def study(log: Log | None = None, seeds: Iterable[int] = range(SEEDS)) -> BadOstStudy:
    """Place the log's files with the model of Lustre's allocator and with ours."""
    log = log or load()
    system, wanted, drawn = view(log), requests(log), tuple(seeds)
    placed: dict[str, list[dict[int, int]]] = {"lsa": [], "tarazu": []}
    for policy, results in placed.items():
        for seed in drawn:
            allocation = policies.make(policy, seed=seed).allocate(system, wanted)
            results.append(quality.ost_bytes(system, wanted, allocation.files))
    rates = ost_speeds(log)
    rows = []
    for ost, rate in rates.items():
        held = [f for f in log.files if f.ost == ost]
        lsa, ours = (int(median(p[ost] for p in placed[policy])) for policy in ("lsa", "tarazu"))
        logged_bytes, logged_s = sum(f.size_bytes for f in held), max(f.end_s for f in held)
        rows.append(LoggedOst(ost, rate, logged_bytes, logged_s, lsa, lsa / rate, ours, ours / rate))
    return BadOstStudy(
        tuple(rows),
        len(drawn),
        log.completion_s,
        bounds.time_bound(system, wanted),
        tuple(quality.completion_time_s(system, p) for p in placed["lsa"]),
        tuple(quality.completion_time_s(system, p) for p in placed["tarazu"]),
    )
