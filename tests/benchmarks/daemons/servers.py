"""10,000 servers of 8 OSTs each report to one mdsd once a minute, over as many CURVE connections."""

from __future__ import annotations

import time

from tests.benchmarks.daemons.site import Site, Views
from tests.benchmarks.daemons.usage import cpu_s, memory_bytes
from tests.benchmarks.figure import Figure

OSTS = 8
OSTS_A_FILE_SYSTEM = 4000
"""Some 8,000 are the most that Lustre has: the servers are those of several file systems."""


def measure(
    short: bool,
    servers: int = 10_000,
    interval_s: float = 60.0,
    steady_s: float = 60.0,
    processes: int = 4,
) -> list[Figure]:
    """`short`: a thousand servers, and a tenth of the time."""
    if short:
        servers, interval_s, steady_s = servers // 10, interval_s / 10, steady_s / 10
    file_systems = max(1, servers * OSTS // OSTS_A_FILE_SYSTEM)
    with Site(interval_s=interval_s, mdsd=f"stale_after_s = {max(180.0, 3 * interval_s)}\n") as site:
        fs_names = [f"fs{number}" for number in range(file_systems)]
        share = servers // processes
        views = Views(site)
        mdsd = site.mdsd()
        for place in range(processes):
            site.start(
                "tests.benchmarks.daemons.simulated_ossds",
                site.config,
                place * share,
                share,
                OSTS,
                file_systems,
            )
        osts = processes * share * OSTS // file_systems
        first_s = views.complete(fs_names, osts, 10 * interval_s + 120)
        time.sleep(interval_s / 2)  # what belongs to the start is over
        before = cpu_s(mdsd.pid)
        time.sleep(steady_s)
        steady = (cpu_s(mdsd.pid) - before) / steady_s
        steady_bytes = memory_bytes(mdsd.pid)
        mdsd.kill()
        mdsd.wait()
        again = site.mdsd()
        back_s = views.complete(fs_names, osts, 10 * interval_s + 120)
        back_cpu = cpu_s(again.pid)
        most = max(steady_bytes, memory_bytes(again.pid, most=True))
        views.close()
        return [
            Figure("connections", processes * share, ""),
            Figure("OSTs", processes * share * OSTS, ""),
            Figure("until all are in the view, all starting at once", first_s, "s"),
            Figure("mdsd's share of a core in steady state", 100 * steady, "%", 10.0),
            Figure("mdsd's memory in steady state", steady_bytes / 1e6, "MB"),
            Figure("mdsd's memory at most", most / 1e6, "MB", 1000.0),
            Figure("kill -9 and restart: until all are in the view again", back_s, "s", interval_s),
            Figure("mdsd's processor time for that", back_cpu, "s"),
        ]
