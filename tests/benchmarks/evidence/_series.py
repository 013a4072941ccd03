"""Captured and public series: what is said of them as they are, and with slowness planted into their load.

- `tests/data/lustre/sick`: two captured servers during one IOR run; the disk of one was held at 2 MB/s.
- `tests/data/lustre/series`: a captured server at four moments, nothing slow.
- LMT of a Cori file system (24 OSTs, five minutes in steps of 5 s) and fullness of one with 248 OSTs over 23 hours
  (NERSC/pytokio): bytes, and no times, so nothing can be said of them as they are. Their load is real; the times of its
  I/Os are those of `_incidents`' disks, and each hour one OST is made slow.
"""

from __future__ import annotations

import csv
import gzip
import logging
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import median

import numpy as np

from tarazu.daemons.mdsd import filling
from tarazu.model import Ost, SystemView
from tarazu.stats.collector import Collector
from tarazu.stats.moved import UNKNOWN, moved
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.stats.view import ViewBuilder
from tarazu.units import KIB, MIB, TIB
from tarazu.wire.reports import OstReport
from tests.benchmarks.evidence._disks import Floats, Ios
from tests.benchmarks.evidence._incidents import HOUR_S, Site, System
from tests.benchmarks.evidence._judging import Detector, Outcome
from tests.benchmarks.figure import Figure
from tests.stats.conftest import SickDisk

DATA = Path(__file__).parent.parent.parent / "data" / "evidence"
IO_BYTES = 4.0 * MIB
SEED = 2000
AGAIN = 25
"""Hours for which the five minutes of LMT are played, over and over."""


def rows(name: str) -> tuple[list[str], list[list[str]]]:
    """(columns, rows) of an extract."""
    path = DATA / name
    text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
    head, *rest = csv.reader(text.splitlines())
    return head, rest


def lmt(name: str) -> tuple[Floats, Floats, Floats]:
    """(seconds since the first, bytes read, bytes written), of (sample, OST)."""
    _, found = rows(name)
    times = sorted({row[0] for row in found})
    osts = sorted({row[1] for row in found})
    counters = np.zeros((2, len(times), len(osts)))
    for time, ost, read, written, *_ in found:
        counters[:, times.index(time), osts.index(ost)] = float(read), float(written)
    first = datetime.fromisoformat(times[0])
    at_s = np.array([(datetime.fromisoformat(t) - first).total_seconds() for t in times])
    return at_s, counters[0], counters[1]


def fullness() -> tuple[Floats, Floats, Floats]:
    """(Unix time, bytes used of (sample, OST), size of each OST)."""
    found = np.array(rows("ost-fullness.csv.gz")[1], float)
    return found[1:, 0], found[1:, 1:] * KIB, found[0, 1:] * KIB


class Replayed(Site):
    """OSTs under a load that was measured, one a server; times come from disks as of other sites, but faster."""

    def __init__(self, at_s: Floats, read: Floats, written: Floats, seed: int) -> None:
        """`at_s`: (interval + 1,); bytes that each OST moved in each: (interval, OST)."""
        osts = read.shape[1]
        super().__init__(System(osts, 1, 1, 0, 0, 0, (HOUR_S / 2, HOUR_S / 2), HOUR_S), seed)
        self._bytes_per_s = np.full(osts, 1e9)  # of a large RAID: these moved up to 383 MB/s
        self._edges_s, self._moved = at_s, (read, written)

    def _load(self, length_s: float) -> Ios:
        """Of the stretch that begins now; the series begins anew where it ends."""
        whole_s = float(self._edges_s[-1])
        parts, begin_s = list[Ios](), self._begun
        while begin_s < self._begun + length_s:
            turn = begin_s // whole_s * whole_s
            n = int(np.searchsorted(self._edges_s, begin_s - turn, side="right")) - 1
            end_s = min(turn + float(self._edges_s[n + 1]), self._begun + length_s)
            share = (end_s - begin_s) / float(self._edges_s[n + 1] - self._edges_s[n])
            for writes, of in enumerate(self._moved):
                counts = self.random.poisson(share * of[n] / IO_BYTES)
                total = int(counts.sum())
                at_s = self.random.uniform(begin_s, end_s, total) - self._begun
                ost = np.repeat(np.arange(len(counts)), counts)
                parts.append(Ios(ost, at_s, np.full(total, IO_BYTES), np.full(total, bool(writes))))
            begin_s = end_s
        return Ios(*(np.concatenate(of) for of in zip(*parts)))


def replay(site: Replayed, hours: int, way: str) -> list[Outcome]:
    """A healthy hour, then in each hour's second half one OST is 1.5 to 50 times slower."""
    detector = Detector(site.system, way)
    outcomes = [detector.watch(stretch) for stretch in site.warm_up()]
    return outcomes + [detector.watch(site.stretch("one")) for _ in range(hours - 1)]


def captured() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        sick_disk, views = SickDisk(Path(directory)), ViewBuilder(180)
        collectors = {name: Collector(root, name) for name, root in sick_disk.roots.items()}
        shown, seen, wrong = 0, dict[int, int](), set[int]()
        logging.disable(logging.WARNING)  # of what was not captured
        for moment in sick_disk.MOMENTS:
            for name, collector in collectors.items():
                now = sick_disk.set(name, moment)
                views.update(collector.collect(now), now)
            found = {o.index: o.relative_speed for o in views.view("lustre", now).osts}
            shown += any(found.get(i) is not None for i in sick_disk.SICK)
            for index, speed in found.items():
                if speed is not None and speed < 1:
                    if index > 5:  # all five OSTs of a server lie on its one disk
                        seen.setdefault(index, shown)
                    else:
                        wrong.add(index)
        logging.disable(logging.NOTSET)
    late = max(seen.get(i, 99) for i in sick_disk.SICK)
    yield Figure("captured, a disk at 2 MB/s: reports with I/O until it is called", late, "", most=4)
    yield Figure("captured: OSTs of the other server that are called", len(wrong), "", most=0)


def as_they_are() -> Iterator[Figure]:
    """LMT's counters, of which none is a time."""
    at_s, read, written = lmt("lmt-snx11025.csv.gz")
    finder = SlowOstFinder("lustre")
    for t, r, w in zip(at_s.tolist(), read.tolist(), written.tolist()):
        finder.update_server([_of_lmt(index, r[index], w[index]) for index in range(len(r))], t)
    said = finder.estimates()
    yield Figure("LMT, 24 OSTs, bytes only: OSTs of which anything is said", len(said), "", most=0)
    at_s, read, written = lmt("lmt-reset.csv")
    reports = [_of_lmt(0, r, w) for r, w in zip(read[:, 0].tolist(), written[:, 0].tolist())]
    rates = [moved(b, a, s) for a, b, s in zip(reports, reports[1:], np.diff(at_s).tolist())]
    known = [rate for rate in rates if rate != UNKNOWN]
    wrong = sum(not 0 <= (rate.writing_bytes_per_s or 0.0) < 1e9 for rate in known)
    yield Figure(
        "LMT, counters that begin anew: intervals without a rate", len(rates) - len(known), "", most=1
    )
    yield Figure("LMT, counters that begin anew: rates that cannot be", wrong, "", most=0)


def _of_lmt(index: int, read: float, written: float) -> OstReport:
    """LMT counts no requests: so many of 1 MiB."""
    return OstReport(
        "lustre",
        index,
        TIB,
        TIB,
        TIB,
        write_bytes=int(written),
        write_samples=int(written // MIB),
        read_bytes=int(read),
        read_samples=int(read // MIB),
    )


def replayed(short: bool, way: str) -> Iterator[Figure]:
    at_s, read, written = lmt("lmt-snx11025.csv.gz")
    site = Replayed(at_s, np.diff(read, axis=0), np.diff(written, axis=0), SEED)
    yield from _of_replay(f"{way}: LMT's load of 24 OSTs", replay(site, 2 if short else AGAIN, way))
    if not short:
        at_s, used, _ = fullness()
        grown = np.maximum(np.diff(used, axis=0), 0.0)
        site = Replayed(at_s - at_s[0], np.zeros_like(grown), grown, SEED)
        yield from _of_replay(f"{way}: growth of 248 OSTs, 23 h", replay(site, 23, way))


def _of_replay(what: str, outcomes: list[Outcome]) -> Iterator[Figure]:
    for low, high in ((1.5, 3.0), (3.0, 50.0)):
        chosen = [o for o in outcomes if o.kind == "one" and low <= o.factor < high]
        if sick := sum(o.sick for o in chosen):
            share = sum(len(o.delays_s) for o in chosen) / sick
            yield Figure(f"{what}: recall, {low:g} to {high:g} times slower (of {sick})", share, "")
    hours = sum(o.healthy_s for o in outcomes) / HOUR_S
    false = sum(o.false + o.false_healthy for o in outcomes)
    yield Figure(f"{what}: false alarms in {hours:,.0f} OST-hours", false, "")


def forecasts() -> Iterator[Figure]:
    """Fill of 248 OSTs: what the forecast of mdsd says after 23 hours, and how far half a day tells the other half."""
    at_s, used, sizes = fullness()
    osts = [_ost(i, size, u) for i, (size, u) in enumerate(zip(sizes.tolist(), used[-1].tolist()))]
    forecast = filling.Filling("")
    forecast.take(
        _view([_ost(o.index, o.total_bytes, u) for o, u in zip(osts, used[0].tolist())]), float(at_s[0])
    )
    days = forecast.days_until_full(_view(osts), float(at_s[-1]))
    yield Figure("fullness, 23 h: days until full are said (a day is needed)", days is not None, "", most=0)
    half = int(np.searchsorted(at_s, (at_s[0] + at_s[-1]) / 2))
    rate = (used[half] - used[0]) / (at_s[half] - at_s[0])
    ahead_s = float(at_s[-1] - at_s[half])
    off = np.abs(used[half] + rate * ahead_s - used[-1]) / sizes
    still = np.abs(used[half] - used[-1]) / sizes
    yield Figure(
        "fullness: half a day told from the half before, off by, median", 100 * median(off), "% of size"
    )
    yield Figure("fullness: taken as constant, off by, median", 100 * median(still), "% of size")


def _ost(index: int, size: float, used: float) -> Ost:
    free = int(size - used)
    return Ost(index, f"oss{index}", int(size), free, free)


def _view(osts: list[Ost]) -> SystemView:
    return SystemView("lustre", 0.0, tuple(osts), ())


def measure(short: bool, ways: tuple[str, ...]) -> list[Figure]:
    figures = [*captured(), *as_they_are(), *forecasts()]
    for way in ways:
        figures += replayed(short, way)
    return figures
