"""10,000 OSTs on 2,000 servers: what mdsd's memory of what is usual costs, in bytes and in processor time."""

from __future__ import annotations

import random
import time
import tracemalloc

from tarazu.daemons.mdsd.system import LEARN_S
from tarazu.daemons.mdsd.usual_times import dump, load
from tarazu.stats.evidence import Evidence
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.stats.usual import Usual
from tarazu.units import GIB, KIB, MIB
from tarazu.wire.reports import IoCounters, OstReport
from tests.benchmarks.figure import Figure

OSTS, TRACED, PER_SERVER, INTERVAL_S = 10_000, 200, 5, 60.0
SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB)
DEPTHS = (1.0, 4.0, 30.0)


def measure(short: bool) -> list[Figure]:
    """`short`: a tenth of the OSTs."""
    osts = OSTS // 10 if short else OSTS
    tracemalloc.start()  # makes all much slower
    kept = known(TRACED)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    usual, at_s = known(osts)
    dump_s, data = timed(lambda: dump(usual))
    load_s, _ = timed(lambda: load(Usual(), data, "usual.msgpack"))
    with_s, without_s = interval_s(osts, usual, at_s), interval_s(osts, Usual(), at_s)
    return [
        Figure("OSTs", osts, ""),
        Figure("memory of an OST", memory / TRACED, "bytes", most=2048.0),
        Figure("file, of an OST", len(data) / osts, "bytes", most=2048.0),
        Figure("made for writing", 1000 * dump_s, "ms"),
        Figure("read at the start", 1000 * load_s, "ms"),
        Figure("an interval judged, beside peers and history", with_s, "s"),
        Figure("beside peers alone", without_s, "s"),
        Figure("of a core, with reports every 60 s", 100 * with_s / INTERVAL_S, "%", most=10.0),
    ]


def known(osts: int) -> tuple[Usual, float]:
    """All cells that four sizes and three depths of the queue use, of each direction; and the time then."""
    usual, now = Usual(), 0.0
    for _ in range(6):
        for size in SIZES:
            for depth in DEPTHS:
                now += 900.0
                usual.pass_time(now)
                seconds = depth * (0.006 + size / 150e6) * 100
                e = Evidence(now - 60, now, "brw_stats", 100, 100 * size, seconds, depth, depth)
                for index in range(osts):
                    usual.learn(("fs", index, True), e)
                    usual.learn(("fs", index, False), e)
    return usual, now


def interval_s(osts: int, usual: Usual, at_s: float) -> float:
    """Processor time of one interval's reports, looked at as often as mdsd does it by itself."""
    finder, chance = SlowOstFinder("fs", usual), random.Random(1)
    servers = {i: f"oss{i // PER_SERVER}" for i in range(osts)}
    counts = [[0, 0, 0, 0, 0] for _ in range(osts)]
    firsts, spent_s = range(0, osts, PER_SERVER), 0.0
    for interval in range(4):
        seen_s = at_s
        for number, first in enumerate(firsts):
            now = at_s + INTERVAL_S * (interval + number / len(firsts))
            reports = []
            for index in range(first, min(first + PER_SERVER, osts)):
                of, size = counts[index], SIZES[index % 4]
                one_s = (0.006 + size / 150e6) * chance.lognormvariate(0, 0.3)
                for n, more in enumerate((100, 100 * size, int(100e6 * one_s), 100, 100)):
                    of[n] += more
                io = IoCounters("brw_stats", *of)
                reports.append(OstReport("fs", index, GIB, GIB, GIB, reads=io, writes=io))
            begin = time.thread_time()
            finder.update_server(reports, now)
            if now - seen_s >= LEARN_S:
                seen_s = now
                finder.estimates({}, servers)
            spent_s = spent_s * (interval > 0 or number > 0) + time.thread_time() - begin
            if interval < 2:
                spent_s = 0.0
    return spent_s / 2


def timed(what):  # type: ignore[no-untyped-def]
    begin = time.thread_time()
    result = what()
    return time.thread_time() - begin, result
