"""What TWINS' gain hangs on: situation F with other parameters; noise; what comes together, what disks idle."""

from __future__ import annotations

from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III, WINDOWS, WINDOWS_S, KiB, Situation
from tarazu.parts.council.study.requests.system import GRID5000, Disk, RequestSystem
from tests.benchmarks.figure import Figure

F = TABLE_III["F"]
CROWD = Situation(1, 512, True, "contiguous", "read", 32 * KiB)
"""All processes from server to server together, behind one node."""
SHORT_PART = 64
OTHERS = {
    "as it is": GRID5000,
    "no read-ahead": GRID5000._replace(disk=Disk(segment_bytes=0)),
    "messages of 200 us": GRID5000._replace(hop_s=200e-6),
    "1 ms between requests": GRID5000._replace(client_s=1e-3),
    "4 threads of a node": GRID5000._replace(threads=4),
    "one request a dispatch": GRID5000._replace(aggregate=1),
    "4 accesses at a disk": GRID5000._replace(server_threads=4),
    "16 accesses at a disk": GRID5000._replace(server_threads=16),
}


def rates(situation: Situation, system: RequestSystem, part: int, *settings: Setting) -> list[float]:
    """MB/s of each."""
    return [simulate(situation, one, 1, system=system, part=part).bytes_per_s / 1e6 for one in settings]


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    part = SHORT_PART if short else SCALE

    def least(value: float) -> float | None:
        return None if short else value

    def most(value: float) -> float | None:
        return None if short else value

    figures, gains = [], {}
    for name, system in OTHERS.items():
        fifo, *windows = rates(F, system, part, Setting("fifo"), *(Setting("twins", s) for s in WINDOWS_S))
        gains[name] = max(windows) / fifo - 1
        best = WINDOWS[windows.index(max(windows))]
        figures.append(Figure(f"F, {name}: FIFO {fifo:.0f} MB/s, best window {best}", max(windows), "MB/s"))
    fifo, twins = rates(
        CROWD, GRID5000._replace(client_s=0.1), part, Setting("fifo"), Setting("twins", WINDOWS_S[0])
    )
    plain, single, deep = (
        100 * gains[name] for name in ("as it is", "one request a dispatch", "16 accesses at a disk")
    )
    return [
        *figures,
        Figure("F as it is: gain over FIFO", plain, "%", least=least(30.0)),
        Figure(
            "F, one request a dispatch: gain over FIFO",
            single,
            "%",
            most=most(10.0),
        ),
        Figure(
            "F, 16 accesses at a disk: gain over FIFO",
            deep,
            "%",
            most=most(0.0),
        ),
        Figure(
            "512 processes on a node, 100 ms of noise: 125us / FIFO", twins / fifo, "times", least=least(1.5)
        ),
        Figure("512 processes on a node, 100 ms of noise: FIFO", fifo, "MB/s"),
        Figure("512 processes on a node, 100 ms of noise: 125us", twins, "MB/s"),
        *_merged(part),
        *_disks(part, short),
    ]


def _merged(part: int) -> list[Figure]:
    """How many requests become one access, at most: up to 16 says the paper, and not of which requests."""
    figures = []
    for operation in ("write", "read"):
        for most in (1, 2, 4, 16):
            system = GRID5000._replace(aggregate=most)
            fifo, *windows = rates(
                F._replace(operation=operation),
                system,
                part,
                Setting("fifo"),
                *(Setting("twins", s) for s in WINDOWS_S),
            )
            best = WINDOWS[windows.index(max(windows))]
            at_250us = windows[WINDOWS.index("250us")]
            seen = f"FIFO {fifo:.0f}, 250us {at_250us:.0f} MB/s, best window {best}"
            figures.append(Figure(f"F, {operation}, {most} merged at most: {seen}", max(windows), "MB/s"))
    return figures


def _disks(part: int, short: bool) -> list[Figure]:
    """How many accesses the disks have to make, and for how much of the time they do something."""
    settings = {"FIFO": Setting("fifo"), "125us": Setting("twins", 125e-6), "8ms": Setting("twins", 8e-3)}
    figures, accesses = [], {}
    for letter in "EF":
        for name, setting in settings.items():
            seen = simulate(TABLE_III[letter], setting, 1, part=part)
            busy = sum(seen.busy_s) / (len(seen.busy_s) * seen.makespan_s)
            accesses[letter, name] = seen.accesses
            figures += [
                Figure(f"{letter}, {name}: accesses of the disks", seen.accesses, ""),
                Figure(f"{letter}, {name}: time for which the disks are busy", 100 * busy, "%"),
            ]
    together = accesses["F", "8ms"] / accesses["F", "FIFO"]
    return [
        *figures,
        Figure("F, accesses with 8ms beside FIFO", together, "times", most=None if short else 0.7),
    ]
