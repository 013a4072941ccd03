"""Progressive layouts tuned to a site's files: on halves that they were not tuned on, beside what sites use.

Sizes of the public Darshan logs in `tests/data` and in the package darshan, and of three synthetic sites (`_sites.py`).
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from tarazu import lustre
from tarazu.errors import TraceError
from tarazu.layout.setstripe import format_layout, parse_layout
from tarazu.model import Layout
from tarazu.parts.pfl import gathered, listing
from tarazu.parts.pfl.cost import PARTS, Target, Weights, of_layout
from tarazu.parts.pfl.later import widened_later
from tarazu.parts.pfl.played import played
from tarazu.parts.pfl.search import EXTENSIONS, Grid, cheapest, fewest_of, grid, kinds, layout_of
from tarazu.parts.pfl.sizes import BY_BYTES, Half, Halves, Sizes, expected
from tarazu.parts.pfl.tuner import TUNED, Tuned, Tuning, tune
from tarazu.trace.darshan_runs import import_log
from tarazu.trace.records import FileRecord
from tarazu.units import GIB, KIB, MIB, TIB
from tests.benchmarks.figure import Figure
from tests.benchmarks.reach._sites import SITES, drawn

DATA = Path(__file__).parents[2] / "data"
THIRD = 1 / 3
NOISE = 1 + 1e-9


def measure(short: bool) -> list[Figure]:
    figures: list[Figure] = []
    seeds = range(1 if short else 3)
    for name, site in SITES.items():
        for seed in seeds:
            of = drawn(site, 20_000 if short else 200_000, 8600 + seed)
            if seed == 0:
                figures += [
                    Figure(
                        f"{name}: files up to {site.limit_bytes // 1000} kB",
                        of.share,
                        "",
                        site.share[1],
                        site.share[0],
                    ),
                    Figure(f"{name}: space that they hold", of.space, "", site.space[1], site.space[0]),
                    Figure(
                        f"{name}: mean",
                        of.mean_bytes / 1e6,
                        "MB",
                        site.mean_bytes[1] / 1e6,
                        site.mean_bytes[0] / 1e6,
                    ),
                ]
            label = name if seed == 0 else f"{name}, seed {seed}"
            figures += _judged(label, of.halves, site.osts, details=seed == 0, robust=seed == 0 and not short)
    runs = _runs(short)
    logs = _halved(runs)
    figures += _judged("Darshan logs", logs, 35, details=True, robust=not short, by_name=True)
    for by_name in (True,) if short else (True, False):
        halves = logs.split(by_name)
        for turned in (False,) if short else (False, True):
            first, second = halves[:2] if not turned else (halves[1], halves[0])
            found = tune(first, second, halves[2], Tuning(Target(35)), {})
            label = f"Darshan logs, by {'name' if by_name else halves[2]}{', turned' if turned else ''}"
            figures += _beside(label, found, strict=by_name)
    figures += _splits(runs, 1 if short else 20)
    figures.append(_exhaustive(10 if short else 150))
    figures += _listing(100_000 if short else 1_000_000)
    return figures


def _judged(
    name: str, halves: Halves, osts: int, details: bool, robust: bool, by_name: bool = False
) -> Iterator[Figure]:
    first, second, by = halves.split(by_name)
    target = Target(osts)
    wanted = Tuning(target, mdt_room_bytes=TIB)
    found = tune(first, second, by, wanted, {})
    if not by_name:
        yield from _beside(name, found)
    if not details:
        return
    small = [r for r in found.rows if r.kind == "tuned"]
    paper = found.row("PFL 1 of the paper").cost
    if paper.small_objects:
        least = min(r.cost.small_objects for r in small) / paper.small_objects
        only = found.row(TUNED).cost.small_objects / paper.small_objects
        yield Figure(f"{name}: objects of files up to 64 KiB, of PFL 1's", least, "", goal=THIRD)
        yield Figure(f"{name}: the same without DoM: there is no less than 1", only, "")
    yield Figure(f"{name}: objects a file, of PFL 1's", found.row(TUNED).cost.objects / paper.objects, "")
    recommended = found.row(found.recommended)
    yield Figure(f"{name}: recommended, above the cheapest for the half itself", recommended.loss, "")
    beside = played(second.classes(), target, {r.name: parse_layout(r.setstripe)[0] for r in found.rows})
    if TUNED in beside:
        others = beside["PFL 1 of the paper"].lustre_s
        yield Figure(
            f"{name}: time under Lustre's allocator, of PFL 1's", beside[TUNED].lustre_s / others, ""
        )
    if robust:
        yield from _robust(name, first, second, target, found)


def _beside(name: str, found: Tuned, strict: bool = True) -> Iterator[Figure]:
    """The tuned layout that is cheapest where it was tuned, beside the best of the others where it was not.

    strict: missing it is a failure. Of few runs, of which each half has others, it is a goal.
    """
    others = min(r.cost.total for r in found.rows if r.kind != "tuned")
    chosen = min((r for r in found.rows if r.kind == "tuned"), key=lambda r: r.tuned_on.total)
    ratio = chosen.cost.total / others
    if chosen.name != TUNED:
        yield Figure(f"{name}: the same with stripes alone", found.row(TUNED).cost.total / others, "")
    what = f"{name}: cost held out, of the best other's"
    yield Figure(what, ratio, "", most=NOISE) if strict else Figure(what, ratio, "", goal=NOISE)
    yield Figure(
        f"{name}: what is recommended",
        found.row(found.recommended).cost.total / others,
        "",
        most=NOISE * 1.01,  # below 1 % saved what is there stays
    )


def _robust(name: str, first: Half, second: Half, target: Target, found: Tuned) -> Iterator[Figure]:
    """Tuned with a part's weight halved and doubled, judged by the weights as they are."""
    worst, changed = 0.0, 0
    to_come, judged = expected(first.classes()), second.classes()
    usual = found.row(TUNED)
    for part, factor in itertools.product(PARTS, (0.5, 2.0)):
        other = msgspec.structs.replace(target, weights=Weights(**{part: factor}))
        on = grid(to_come, other)
        layout = fewest_of(cheapest(to_come, other, on)).layout
        layout = widened_later(layout, first, BY_BYTES, other, on.ends)
        ratio = of_layout(judged, target, layout).total / usual.cost.total
        worst = max(worst, ratio)
        changed += format_layout(layout) != usual.setstripe
        if part in ("objects", "bandwidth"):
            yield Figure(f"{name}: tuned with {part} x{factor:g}, cost by the usual weights", ratio, "")
    yield Figure(f"{name}: layouts that differ, of 10 with other weights", changed, "")
    yield Figure(f"{name}: worst of the 10", worst, "")


def _splits(runs: list[tuple[bytes, tuple[FileRecord, ...]]], splits: int) -> Iterator[Figure]:
    """Many other halves of the logs by run, each both ways round: one split says little of so few runs."""
    ratios = []
    for seed in range(splits):
        first, second, by = _halved(runs, b"%d " % seed).split(least_share=0)
        for on, judged in ((first, second), (second, first)):
            found = tune(on, judged, by, Tuning(Target(35), extending=False), {})
            others = min(r.cost.total for r in found.rows if r.kind != "tuned")
            ratios.append(found.row(TUNED).cost.total / others)
    what = f"Darshan logs, by run, {len(ratios)} ways: cost held out, of the best other's"
    yield Figure(f"{what}, median", float(np.median(ratios)), "")
    yield Figure(f"{what}, mean", float(np.mean(ratios)), "")
    yield Figure(f"{what}, worst", max(ratios), "", goal=NOISE)
    yield Figure(f"{what}, ways where it is dearer", sum(r > NOISE for r in ratios), "", goal=0)


def _runs(short: bool) -> list[tuple[bytes, tuple[FileRecord, ...]]]:
    """Name and files of each public log: a run each."""
    found = []
    folders = [DATA / "traces", DATA / "phases"]
    package = find_spec("darshan")
    if package and package.origin:
        folders.append(Path(package.origin).parent)
    paths = sorted({p.name: p for folder in folders for p in folder.rglob("*.darshan")}.values())
    for path in paths[:: 3 if short else 1]:
        try:
            found.append((path.name.encode(), import_log(str(path), mount="/").files))
        except TraceError:
            continue  # PyDarshan has broken ones, for its own tests
    return found


def _halved(runs: list[tuple[bytes, tuple[FileRecord, ...]]], salt: bytes = b"") -> Halves:
    """salt: put before the names that halves are made by."""
    halves = Halves()
    for name, files in runs:
        gathered.add_run(files, salt + name, halves)
    return halves


def _exhaustive(grids: int) -> Figure:
    """Random small grids, files and weights; all layouts of each are tried."""
    rng = random.Random(86)
    worse = 0.0
    for _ in range(grids):
        sizes = Sizes()
        for _ in range(rng.randint(1, 10)):
            sizes.add(
                int(2 ** rng.uniform(0, 38)),
                rng.choice((1, 1, 8, 64)),
                rng.choice((1, 16, 100)),
                rng.randint(1, 500),
            )
        of = sizes.classes()
        weights = Weights(**{part: rng.choice((0.5, 1.0, 2.0)) for part in PARTS})
        target = Target(rng.choice((4, 35, 248)), weights=weights)
        ends = tuple(sorted(rng.sample([64 * KIB << n for n in range(20)], 4)))
        counts = tuple(sorted(rng.sample((1, 2, 3, 4, 8, 16, 32), 3)))
        dom = tuple(e for e in ends if e <= MIB) if rng.random() < 0.5 else ()
        on = Grid(ends, counts, 3, dom, EXTENSIONS[:1] if rng.random() < 0.3 else ())
        best = min(of_layout(of, target, layout).total for layout in _all(target, on))
        worse = max(worse, cheapest(of, target, on)[-1].cost / best - 1)
    return Figure(f"above trying every layout, worst of {grids} small grids", worse, "", most=1e-9)


def _all(target: Target, on: Grid) -> Iterator[Layout]:
    for number in range(on.most_components):
        for ends in itertools.combinations(on.ends, number):
            edges = [0, *ends, lustre.EOF]
            for chosen in itertools.product(*(kinds(on, a, b) for a, b in itertools.pairwise(edges))):
                counts = [how.stripe_count for how in chosen]
                if counts == sorted(counts):
                    yield layout_of(target, list(zip(edges, edges[1:], chosen)))


def _listing(lines: int) -> Iterator[Figure]:
    rng = random.Random(7)
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        for at in range(0, lines, 10_000):
            file.write(
                b"".join(
                    b"%d /scratch/p%d/run/f%d\n" % (int(2 ** rng.uniform(0, 36)), i % 1000, i)
                    for i in range(at, at + 10_000)
                )
            )
        file.flush()
        start = time.process_time()
        listing.read(file.name, halves := Halves())
        took = time.process_time() - start
    yield Figure("list: CPU for 100,000,000 lines at this rate", took / lines * 1e8, "s")
    start = time.process_time()
    first, second, by = halves.split()
    tune(first, second, by, Tuning(Target(248), mdt_room_bytes=64 * GIB), {})
    yield Figure("CPU of one tuning, 248 OSTs", time.process_time() - start, "s", most=60)
