"""1,000 clients ask at the same moment for 16 files of 8 stripes each, on 3,600 OSTs."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter

from tests.benchmarks.daemons.site import Site, Views
from tests.benchmarks.daemons.usage import cpu_s, memory_bytes
from tests.benchmarks.figure import Figure

FILES, STRIPES, OSTS = 16, 8, 8


def measure(short: bool, clients: int = 1000, servers: int = 450, processes: int = 4) -> list[Figure]:
    """`short`: a tenth of the clients and of the servers."""
    if short:
        clients, servers = clients // 10, servers // 10
    with Site(interval_s=60.0) as site:
        mdsd = site.mdsd()
        site.start("tests.benchmarks.daemons.simulated_ossds", site.config, 0, servers, OSTS, 1)
        views = Views(site)
        views.complete(["fs0"], servers * OSTS, 120.0)
        views.close()
        share = clients // processes
        crowd = [
            site.start(
                "tests.benchmarks.daemons.simulated_clients", site.config, n * share, share, FILES, STRIPES
            )
            for n in range(processes)
        ]
        for process in crowd:
            _line(process)
        time.sleep(1.0)
        before, begin = cpu_s(mdsd.pid), time.monotonic() + 1.0
        for process in crowd:
            assert process.stdin
            process.stdin.write(f"{begin}\n")
            process.stdin.flush()
        answers = [answer for process in crowd for answer in json.loads(_line(process))]
        used = cpu_s(mdsd.pid) - before
        statuses = Counter(status for _, status in answers)
        if statuses != {"allocated": processes * share}:
            expected = f"expected {processes * share} allocations, found {statuses}"
            raise AssertionError(f"{expected}\n{site.said()}")
        seconds = sorted(waited for waited, _ in answers)
        return [
            Figure("clients", len(seconds), ""),
            Figure("OSTs", servers * OSTS, ""),
            Figure("answer, median", seconds[len(seconds) // 2], "s"),
            Figure("answer, 99th percentile", seconds[len(seconds) * 99 // 100], "s"),
            Figure("answer, slowest", seconds[-1], "s", 5.0),
            Figure("mdsd's processor time for all", used, "s"),
            Figure("mdsd's memory at most", memory_bytes(mdsd.pid, most=True) / 1e6, "MB"),
        ]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise AssertionError(f"{process.args}: expected a line, found its end")
    return line
