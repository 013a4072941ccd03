"""The sweep of `layout.stripe_count = auto` against the site's defaults: the allocator's lower bound under both.

One case is a job step of files of one size on a number of equal OSTs, below a directory with one default layout.
The bound is that of the OST cost (max / mean of the bytes per OST): what no placement of these stripes can beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

import msgspec

from tarazu.allocate.bounds import alike_bound
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.setstripe import parse_layout
from tarazu.model import CreateRequest, FileName, Forecast, Layout
from tarazu.units import GIB, MIB

FILES = (1, 4, 10, 100, 1_000, 10_000)
SIZES = (64 * MIB, 1 * GIB, 32 * GIB, 1024 * GIB)
OSTS = (8, 56, 480, 3_600)
DEFAULTS = {
    "-c 1": "-c 1 -S 4M",
    "-c 4": "-c 4 -S 4M",
    "-c 8": "-c 8 -S 4M",
    "-c -1": "-c -1 -S 4M",
    "PFL": "-E 128M -c 1 -S 4M -E 2G -c 4 -S 4M -E -1 -c 8 -S 4M",
}
NOISE = 1 + 1e-9


class StripeCountCase(msgspec.Struct, frozen=True):
    """One job step under one default."""

    default: str
    osts: int
    files: int
    size_bytes: int
    default_bound: float
    auto_bound: float
    stripe_count: int
    """Of each file under `auto`, of the last component that it reaches; 0 where the files are left to Lustre."""
    left_because: str

    @property
    def gain(self) -> float:
        return self.default_bound / self.auto_bound

    @property
    def worse(self) -> bool:
        return self.auto_bound > self.default_bound * NOISE


class StripeCountSummary(msgspec.Struct, frozen=True):
    """All cases of one default and one number of OSTs."""

    default: str
    osts: int
    cases: int
    better: int
    worse: int
    default_median: float
    auto_median: float
    default_highest: float
    auto_highest: float
    median_gain: float


def case(name: str, default: Layout, osts: int, files: int, size_bytes: int) -> StripeCountCase:
    """What `auto` chooses, and both bounds. Of a PFL default all is kept but what is left open in it."""
    forecast = Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), size_bytes)
    policy = LayoutPolicy(min_size_bytes=0)
    (chosen, *_) = ConfigurationManager(policy, UsableOsts(osts), default).choose([forecast] * files)
    as_site = LayoutPolicy("site", min_size_bytes=0)
    (plain,) = ConfigurationManager(as_site, UsableOsts(osts), default).choose([forecast])
    assert plain.layout is not None
    stripes = [
        msgspec.structs.replace(c, stripe_size_bytes=d.stripe_size_bytes)
        for c, d in zip(plain.layout.components, default.components, strict=True)
    ]
    lustres = msgspec.structs.replace(plain.layout, components=tuple(stripes))
    below = alike_bound(osts, CreateRequest(size_bytes, lustres), files)
    if chosen.layout is None:
        return StripeCountCase(name, osts, files, size_bytes, below, below, 0, chosen.left_because)
    bound = alike_bound(osts, CreateRequest(size_bytes, chosen.layout), files)
    last = chosen.layout.components[chosen.layout.covered(size_bytes) - 1]
    return StripeCountCase(name, osts, files, size_bytes, below, bound, last.stripe_count, "")


def sweep(
    osts: Iterable[int] = OSTS,
    files: Iterable[int] = FILES,
    sizes: Iterable[int] = SIZES,
    progress: Callable[[str], object] = lambda text: None,
) -> tuple[StripeCountCase, ...]:
    """Every default with every number of OSTs, files and every size. progress: called before each default."""
    cases = []
    numbers, counts, lengths = tuple(osts), tuple(files), tuple(sizes)
    for name, text in DEFAULTS.items():
        progress(name)
        default = parse_layout(text)[0]
        cases += [case(name, default, o, f, s) for o in numbers for f in counts for s in lengths]
    return tuple(cases)


def summaries(cases: Sequence[StripeCountCase]) -> tuple[StripeCountSummary, ...]:
    """One row for each default and number of OSTs, in the order of the sweep."""
    rows: dict[tuple[str, int], list[StripeCountCase]] = {}
    for c in cases:
        rows.setdefault((c.default, c.osts), []).append(c)
    return tuple(
        StripeCountSummary(
            name,
            osts,
            len(of),
            sum(c.gain > NOISE for c in of),
            sum(c.worse for c in of),
            median(c.default_bound for c in of),
            median(c.auto_bound for c in of),
            max(c.default_bound for c in of),
            max(c.auto_bound for c in of),
            median(c.gain for c in of),
        )
        for (name, osts), of in rows.items()
    )


HEADER = ("default", "OSTs", "cases", "better", "worse", "bound", "auto", "highest", "auto", "median gain")


def cells(row: StripeCountSummary) -> tuple[str, ...]:
    """A row of the table under HEADER."""
    values = (row.default_median, row.auto_median, row.default_highest, row.auto_highest, row.median_gain)
    numbers = (row.osts, row.cases, row.better, row.worse)
    return (row.default, *map(str, numbers), *(f"{value:.3f}" for value in values))
