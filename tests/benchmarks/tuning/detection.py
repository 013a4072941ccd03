"""How often the pattern that is detected is the one that is there, and what looking at a server's counters costs."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tarazu.parts.council.detect.classifier import spatiality, trained
from tarazu.parts.council.detect.counters import Sampler
from tarazu.parts.council.detect.detection import MIN_REQUESTS
from tarazu.parts.council.detect.features import features
from tarazu.parts.council.study import detected, streams
from tarazu.parts.council.study.confusion import Confusion
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import SCALE, SITUATIONS, Situation
from tarazu.sim.study import study
from tests.benchmarks.figure import Figure
from tests.benchmarks.tuning import situations
from tests.stats.conftest import DATA, blocks, put

HELD_OUT_SEED = 100
"""Not the one by which the training was looked at."""
OSTS, CALLS = 10, 60
MOST_S = 1e-3
"""For a call each second: 0.1 % of a core."""


def measure(short: bool) -> list[Figure]:
    found = _found(short)
    return [
        *_generated(300 if short else 4000),
        *_simulated(found, short),
        *_nameless(short),
        *_sampler(5 if short else CALLS),
    ]


def _generated(count: int) -> list[Figure]:
    held_out = tuple(streams.streams(count, streams.HELD_OUT, HELD_OUT_SEED))
    seen = Confusion.of((s.spatiality, spatiality(features(s.requests))) for s in held_out)
    nameless = Confusion.of(
        (s.spatiality, spatiality(features(request[:3] for request in s.requests))) for s in held_out
    )
    print(f"  held out, generated ({trained().origin}):\n{seen}", file=sys.stderr)
    return [
        Figure("held-out streams: right", 100 * seen.accuracy, "%", least=85),
        Figure("held-out streams, clients not known: right", 100 * nameless.accuracy, "%", least=80),
        *(
            Figure(f"held-out streams: {name} that are detected", 100 * seen.recall(name), "%", least=least)
            for name, least in (("contiguous", 92), ("strided", 85), ("unknown", 45))
        ),
    ]


def _found(short: bool) -> study.Answers[detected.DetectedRow]:
    chosen = range(3, len(SITUATIONS), 29) if short else range(len(SITUATIONS))
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get(situations.KEPT)
        return detected.run(Path(kept) / "detected" if kept else Path(folder), chosen)


def _simulated(found: study.Answers[detected.DetectedRow], short: bool) -> list[Figure]:
    seen = detected.spatiality(found.rows)
    print(f"  simulated, by interval and I/O node:\n{seen}", file=sys.stderr)
    nothing = sum(row.nothing for row in found.rows)
    figures = [
        Figure("simulated intervals", seen.total + nothing, ""),
        Figure("simulated intervals with too few requests", 100 * nothing / (seen.total + nothing), "%"),
        Figure("simulated: spatiality right", 100 * seen.accuracy, "%", least=None if short else 90),
        Figure("simulated: whole pattern right", 100 * detected.patterns(found.rows).accuracy, "%"),
        Figure("cases without a result", len(found.lost), "", most=0),
    ]
    for kind in situations.KINDS:

        def matters(one: Situation, kind: tuple[bool, str, int] = kind) -> bool:
            return (one.shared, one.spatiality, one.request_bytes >> 10) == kind

        of = detected.spatiality(found.rows, matters), detected.patterns(found.rows, matters)
        empty = sum(row.nothing for row in found.rows if matters(SITUATIONS[row.situation]))
        name = f"{'shared' if kind[0] else 'a file each'}, {kind[1]}, {kind[2]} KB"
        figures += [
            Figure(f"{name}: spatiality right", 100 * of[0].accuracy, "%"),
            Figure(f"{name}: whole pattern right", 100 * of[1].accuracy, "%"),
            Figure(f"{name}: nothing", 100 * empty / max(1, empty + of[0].total), "%"),
        ]
    return figures


def _nameless(short: bool) -> list[Figure]:
    """Large requests in turn, as a server sees them that knows no clients, beside one that does (with one window)."""
    chosen = [one for one in SITUATIONS if one.spatiality == "strided" and one.request_bytes == 256 << 10]
    known: Counter[bool] = Counter()
    nameless: Counter[bool] = Counter()
    for situation in chosen[:4] if short else chosen:
        part = min(SCALE, situation.phase(1).requests // detected.ENOUGH)
        for one in simulate(situation, Setting(), 1, part=part, features=True, requests=True).seen:
            if len(one.requests) >= MIN_REQUESTS:
                of = one.observation.read if situation.operation == "read" else one.observation.write
                known[spatiality(of.features) == "strided"] += 1
                offsets = ((offset, size, file) for file, offset, size, _ in one.requests)
                nameless[spatiality(features(offsets)) == "strided"] += 1
    return [
        Figure(f"strided, 256 KB, clients {name}: spatiality right", 100 * of[True] / of.total(), "%")
        for name, of in (("known", known), ("not known", nameless))
    ]


def _sampler(calls: int) -> list[Figure]:
    """As an announcer calls it: a while after the call before, when the processor has done other things."""
    moments = []
    for moment in (1, 4):
        text = [
            (DATA / "series" / f"{n}.{moment}.txt").read_text()
            for n in ("obdfilter.ALL.stats", "osd-ALL.ALL.brw_stats")
        ]
        moments.append([list(blocks(part).values()) for part in text])
    with tempfile.TemporaryDirectory() as folder:
        root, took = Path(folder), []
        debug = root / "sys/kernel/debug/lustre"
        requests = (DATA / "series/ost.OSS.ost_io.stats.4.txt").read_text().partition("=\n")[2]
        put(debug / "ost/OSS/ost_io/stats", requests)
        sampler = Sampler(root, "oss")
        for call in range(calls):
            stats, pages = moments[call % 2]
            for ost in range(OSTS):
                put(debug / f"obdfilter/lustre-OST{ost:04x}/stats", stats[ost % len(stats)])
                put(debug / f"osd-ldiskfs/lustre-OST{ost:04x}/brw_stats", pages[ost % len(pages)])
            time.sleep(0.2)
            began = time.thread_time()
            sampler.sample(float(call))
            took.append(time.thread_time() - began)
    return [
        Figure(
            f"a look at a server of {OSTS} OSTs, median",
            1e3 * statistics.median(took),
            "ms",
            most=1e3 * MOST_S,
        ),
        Figure("the same, longest", 1e3 * max(took[2:]), "ms"),
    ]
