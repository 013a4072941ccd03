"""What order on the servers is worth beside windows on the I/O nodes; and writes that a file system has to sync."""

from __future__ import annotations

from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III, WINDOWS, WINDOWS_S
from tarazu.parts.council.study.requests.system import GRID5000, Disk
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning.sensitivity import SHORT_PART, F, rates

SERVERS = ("fifo", "crrn 8", "orr 256", "trr 256")
DEPTHS = (1, 8)
"""Accesses that a server hands to its disk at once."""
PAPER_WRITE_S = 260.0
"""F's 4 GB (section V-C)."""


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    part = SHORT_PART if short else SCALE
    return [*_orders(part, short), *_writes(part, short)]


def _orders(part: int, short: bool) -> list[Figure]:
    figures, found = [], {}
    for depth in DEPTHS:
        system = GRID5000._replace(server_threads=depth)
        for letter, situation in TABLE_III.items():
            for server, rate in zip(
                SERVERS, rates(situation, system, part, *(Setting("fifo", server=one) for one in SERVERS))
            ):
                found[letter, server, depth] = rate
                figures.append(Figure(f"{letter}, servers with {server}, {depth} at a disk", rate, "MB/s"))
    return [
        *figures,
        *(
            Figure(
                f"{letter}, servers with trr 256 / fifo",
                found[letter, "trr 256", 1] / found[letter, "fifo", 1],
                "times",
                least=None if short else 4.0,
            )
            for letter in ("A", "F")
        ),
    ]


def _writes(part: int, short: bool) -> list[Figure]:
    """Of F, as if all 4 GB were written, beside the paper's time."""
    figures = []
    for name, disk in (("plain", Disk()), ("each committed elsewhere on the disk", Disk(journal=True))):
        system = GRID5000._replace(disk=disk)
        settings = {"FIFO": Setting("fifo")}
        settings |= {name: Setting("twins", window_s) for name, window_s in zip(WINDOWS, WINDOWS_S)}
        took = {
            by: part * simulate(F._replace(operation="write"), one, 1, system=system, part=part).makespan_s
            for by, one in settings.items()
        }
        figures += [Figure(f"F's writes, {name}, {by}", seconds, "s") for by, seconds in took.items()]
        best = min(list(took)[1:], key=took.__getitem__)
        committed = disk.journal and not short
        figures.append(
            Figure(
                f"the same, best window {best}, of the paper's 260 s",
                took[best] / PAPER_WRITE_S,
                "times",
                least=1.0 if committed else None,
                most=2.0 if committed else None if short else 1.0,
            )
        )
    return figures
