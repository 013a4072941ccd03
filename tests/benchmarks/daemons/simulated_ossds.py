"""Many OSSs in one process: each with the socket, the key and the reports of a real ossd, none with statistics to read.

`python -m tests.benchmarks.daemons.simulated_ossds CONFIG FIRST COUNT OSTS FILE_SYSTEMS`
"""

from __future__ import annotations

import sys
import time

import zmq

from tarazu import config
from tarazu.wire.reports import IoCounters, OssReport, OstReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import Publisher, ZmqTransport

LOOK_S = 0.1
"""How late a simulated ossd may notice that mdsd has come."""
GB = 10**9


def fs_name(oss: int, file_systems: int) -> str:
    return f"fs{oss % file_systems}"


def report(oss: int, osts: int, file_systems: int, sequence: int, interval_s: float) -> OssReport:
    """What a busy server of equal OSTs would say: counters that grow, each OST a little different."""

    def target(place: int) -> OstReport:
        index = oss // file_systems * osts + place
        ios = (100 + index % 7) * sequence
        writes = IoCounters("brw_stats", ios, ios << 20, ios * (4000 + 13 * (index % 11)), ios * 2, ios)
        return OstReport(
            fs_name=fs_name(oss, file_systems),
            index=index,
            total_bytes=1000 * GB,
            free_bytes=(600 - index % 50) * GB,
            avail_bytes=(590 - index % 50) * GB,
            write_bytes=ios << 20,
            write_samples=ios,
            writes=writes,
        )

    return OssReport(
        oss=f"oss{oss}",
        sequence=sequence,
        sent_s=time.time(),
        interval_s=interval_s,
        cpu_load=0.1 + oss % 5 / 100,
        memory_load=0.2,
        lnet_bytes_per_s=1e9,
        osts=tuple(target(place) for place in range(osts)),
    )


class Simulated:
    def __init__(self, publisher: Publisher, oss: int) -> None:
        self.publisher, self.oss = publisher, oss
        self.sequence = 0
        self.last: OssReport | None = None


def main(path: str, first: int, count: int, osts: int, file_systems: int) -> None:
    settings = config.load(path)
    interval_s = settings.ossd.interval_s
    transport = ZmqTransport(curve_for("oss", settings.keys.directory))
    transport.context.set(zmq.MAX_SOCKETS, 4 * count + 100)
    begin = time.monotonic()
    due: list[tuple[float, Simulated]] = []
    of_end: dict[object, Simulated] = {}
    for number in range(count):
        before = set(transport.ends)
        simulated = Simulated(transport.publisher(settings.mdsd.statistics), first + number)
        of_end |= dict.fromkeys(transport.ends - before, simulated)
        # As servers that were started at any time: spread over the interval, the first report at once.
        due.append((begin, simulated))
    print("started", flush=True)
    poller, known = zmq.Poller(), dict[object, Simulated]()
    while True:
        for end in transport.ends:  # one that was refused has a new socket
            if end.socket not in known:
                known[end.socket] = of_end[end]
                poller.register(end.socket, zmq.POLLIN)
        now = time.monotonic()
        for place, (at, simulated) in enumerate(due):
            if at <= now:
                simulated.sequence += 1
                new = report(simulated.oss, osts, file_systems, simulated.sequence, interval_s)
                simulated.last = new
                simulated.publisher.publish(new)
                phase_s = interval_s * place / count if simulated.sequence == 1 else interval_s
                due[place] = (at + phase_s, simulated)
        for socket, _ in poller.poll(0):
            simulated = known[socket]
            if simulated.publisher.wait(0) and simulated.last:
                simulated.publisher.publish(simulated.last)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
