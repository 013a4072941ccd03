"""What order on the servers is worth beside windows on the I/O nodes."""

from __future__ import annotations

from tarazu.parts.council.study.requests.outcome import Setting
from tarazu.parts.council.study.requests.run import simulate
from tarazu.parts.council.study.requests.situation import SCALE, TABLE_III
from tarazu.parts.council.study.requests.situations import SHORT_PART
from tests.benchmarks.figure import Figure

SERVERS = ("fifo", "orr 256", "trr 256")


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works."""
    part = SHORT_PART if short else SCALE
    rates = {
        (letter, server): simulate(situation, Setting("fifo", server=server), 1, part=part).bytes_per_s / 1e6
        for letter, situation in TABLE_III.items()
        for server in SERVERS
    }
    return [
        *(
            Figure(f"{letter}, servers with {server}", rate, "MB/s")
            for (letter, server), rate in rates.items()
        ),
        *(
            Figure(
                f"{letter}, servers with trr 256 / fifo",
                rates[letter, "trr 256"] / rates[letter, "fifo"],
                "times",
                least=None if short else 4.0,
            )
            for letter in ("A", "F")
        ),
    ]
