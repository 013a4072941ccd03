"""Two mdsds: how long one notice takes to be answered with a follower and without, and until the other one answers."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tarazu.wire.messages import StepEnded
from tests.benchmarks.figure import Figure
from tests.daemons.mdsd.test_standby import TwoMdsds

PATIENCE_S = 30.0


def measure(short: bool) -> list[Figure]:
    """`short`: fewer notices."""
    notices = 50 if short else 500
    with tempfile.TemporaryDirectory() as directory:
        site = TwoMdsds(Path(directory))
        try:
            site.run("first")
            site.run("second")
            site.ossd()
            site.wait("first", role="active", in_step=True)
            both_s = median_s(site, notices)
            handed_s = until_answered_s(site, site.running["first"].terminate)
            site.running["first"].wait()
            site.run("first")
            site.wait("second", role="active", in_step=True)
            killed_s = until_answered_s(site, lambda: site.kill("second"))
            alone_s = median_s(site, notices)
        finally:
            site.stop()
    return [
        Figure("a notice, alone (median)", 1000 * alone_s, "ms"),
        Figure("a notice, with a follower (median)", 1000 * both_s, "ms"),
        Figure("kill -9 of the active one: to the next answer", killed_s, "s", 10.0),
        Figure("SIGTERM to the active one: to the next answer", handed_s, "s", 5.0),
    ]


def median_s(site: TwoMdsds, notices: int) -> float:
    """From a client's question to its answer."""
    client, took = site.asking(), []
    for number in range(notices):
        begin = time.monotonic()
        client.request(StepEnded("nobody", f"m{number}-{begin}"), PATIENCE_S)
        took.append(time.monotonic() - begin)
    return statistics.median(took)


def until_answered_s(site: TwoMdsds, end: Callable[[], object]) -> float:
    client = site.asking()
    client.request(StepEnded("nobody", f"before-{time.monotonic()}"), PATIENCE_S)
    begin = time.monotonic()
    end()
    client.request(StepEnded("nobody", f"after-{begin}"), PATIENCE_S)
    return time.monotonic() - begin
