"""Which default layout a directory should have for one job; changes nothing.

pool    the site keeps a pool of good OSTs (`tarazu change pool`): their usual layout, in that pool. Lustre
        still chooses among its OSTs, and no file is refused
start   a start index, so that the stripes fall on a run of OSTs without a problem: Lustre passes by one
        that refuses later, and no file is refused. All files of the directory begin on the same OST, so they are
        striped over several, and it is done only where that takes less time than Lustre's own choice among all OSTs
list    the same with a list of OSTs, wherever they lie. When one of them goes away, Lustre refuses new files there:
        only where the user says so
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from tarazu.lustre import LOV_ALL_STRIPES
from tarazu.model import Component, Layout, Ost
from tarazu.ost_state import AVOIDED, NEARLY_FULL, UNKNOWN, UNUSABLE, Verdict
from tarazu.units import MIB, human_bytes

WIDEST = 8
"""OSTs over which files are striped that would have fewer."""
SLOWEST = 0.01
"""Share of its peers' speed that an OST has at least, for an estimate."""
SMALL_STRIPE = MIB
"""Files of less than two of these lie on one OST, whatever their layout."""
ROOM = 4.0
"""Times what is expected that must be free on each OST that is named."""

Method = Literal["pool", "start", "list"]


class Expected(msgspec.Struct, frozen=True):
    """What a job will create below a directory; zeros: nobody knows."""

    files: int = 0
    size_bytes: int = 0
    """Of all of them."""


class DirectoryChoice(msgspec.Struct, frozen=True):
    """What to do with one directory."""

    method: Method | None
    """None: nothing, `why`."""
    why: str
    layout: Layout | None = None
    osts: tuple[tuple[int, ...], ...] = ()
    """Of each component: its list, its start index alone, or nothing."""
    stuck: bool = False
    """An OST has a problem, and no layout keeps files off it."""


def choose(
    base: Layout,
    expected: Expected,
    targets: Sequence[Ost],
    pool: str,
    pool_osts: Sequence[int],
    *,
    lists: bool = False,
) -> DirectoryChoice:
    """`base`: what files get there anyway; `targets`: of the file system; `pool`, `pool_osts`: that of good OSTs
    (empty: there is none). `lists`: lists of OSTs may be named, too.
    """
    if any(c.extension_bytes for c in base.components):
        return DirectoryChoice(None, "the layout there is self-extending (SEL): Lustre chooses")
    amiss = {t.index: t.verdict for t in targets if t.verdict in AVOIDED | UNKNOWN}
    free = [number for number, c in enumerate(base.components) if c.pattern != "mdt" and not c.pool]
    if not free:
        return DirectoryChoice(None, "the layout there names pools itself")
    usable = sorted(set(pool_osts) & {t.index for t in targets})
    inside = [index for index in usable if index in amiss]
    # A pool in which as many are amiss as outside is kept by nobody.
    if usable and (not inside or len(inside) * len(targets) < len(amiss) * len(usable)):
        parts = [
            msgspec.structs.replace(c, pool=pool) if n in free else c for n, c in enumerate(base.components)
        ]
        layout = msgspec.structs.replace(base, components=tuple(parts))
        return DirectoryChoice("pool", f"{pool} has {len(usable) - len(inside)} good OSTs", layout)
    if not amiss:
        return DirectoryChoice(None, "no OST has a problem: Lustre's own choice is as good")
    if len(free) < len(base.components):
        return DirectoryChoice(
            None, "a part of the layout is on the MDT or in a pool, and there is no pool of good OSTs"
        )
    if expected.files > 1 and expected.size_bytes < 2 * SMALL_STRIPE * expected.files:
        return DirectoryChoice(
            None, "all small files would be on one OST: only a pool of good OSTs spreads them"
        )
    return _narrowed(base, expected, targets, amiss, lists=lists)


def _narrowed(
    base: Layout, expected: Expected, targets: Sequence[Ost], amiss: Mapping[int, Verdict], *, lists: bool
) -> DirectoryChoice:
    good = [t for t in sorted(targets, key=lambda t: t.index) if t.index not in amiss]
    widths, run = _fitting(base, expected, [t.index for t in good], {t.index for t in targets})
    wanted = sum(widths)
    names = ", ".join(f"OST {index} {amiss[index]}" for index in sorted(amiss)[:5])
    names += " …" if len(amiss) > 5 else ""
    if not run and (not lists or len(good) < wanted):
        more = "" if lists else "; a list of OSTs would help (--lists), a pool of good ones is better"
        return DirectoryChoice(None, f"too few OSTs in a row without a problem ({names}){more}", stuck=True)
    method: Method = "start" if run else "list"
    chosen = run or tuple(t.index for t in sorted(good, key=lambda t: -t.avail_bytes)[:wanted])
    share = expected.size_bytes / max(1, widths[-1])
    short = [t.index for t in good if t.index in chosen and t.avail_bytes < ROOM * share]
    if short:
        why = f"OST {short[0]} has too little room for {human_bytes(share)} and more"
        return DirectoryChoice(None, why, stuck=True)
    if (slower := _slower(base, expected, targets, max(widths))) is not None:
        return DirectoryChoice(None, slower)
    parts: list[Component] = []
    osts: list[tuple[int, ...]] = []
    at = 0
    for component, width in zip(base.components, widths, strict=True):
        size = min(component.stripe_size_bytes, _stripe_size(expected, width))
        parts.append(msgspec.structs.replace(component, stripe_count=width, stripe_size_bytes=size))
        osts.append(chosen[at : at + width] if method == "list" else chosen[at : at + 1])
        at += width
    layout = msgspec.structs.replace(base, components=tuple(parts))
    return DirectoryChoice(method, f"avoids {names}", layout, tuple(osts))


def _fitting(
    base: Layout, expected: Expected, good: Sequence[int], there: set[int]
) -> tuple[list[int], tuple[int, ...]]:
    """Stripes of each component, and OSTs in a row for all of them; without such a row, those of a list."""
    most = [_width(c, expected, len(good)) for c in base.components]
    least = [min(width, max(1, c.stripe_count)) for width, c in zip(most, base.components, strict=True)]
    for limit in range(max(most), 1 if expected.files != 1 else 0, -1):
        widths = [max(a, min(b, limit)) for a, b in zip(least, most, strict=True)]
        if run := _run(good, there, sum(widths)):
            return widths, run
    return most, ()


def _stripe_size(expected: Expected, width: int) -> int:
    """So small that a file of the expected size reaches all of its OSTs."""
    if expected.files == 1 or width == 1:
        return 1 << 62
    each = expected.size_bytes // expected.files // width if expected.files else 0
    return max(SMALL_STRIPE, 1 << max(0, each.bit_length() - 1))


def _width(component: Component, expected: Expected, good: int) -> int:
    """How many stripes: as many as the layout says, and more where the files of a job would all lie on few."""
    count = component.stripe_count
    if count >= LOV_ALL_STRIPES - 32 or count < 0:
        return good
    wanted = WIDEST if expected.files != 1 else 1
    return max(1, min(max(count, wanted), good))


def _run(good: Sequence[int], there: set[int], wanted: int) -> tuple[int, ...]:
    """The first OSTs in a row, apart from missing indices, without a problem."""
    row: list[int] = []
    well = set(good)
    for index in sorted(there):
        row = [*row, index] if index in well else []
        if len(row) == wanted:
            return tuple(row)
    return ()


def _slower(base: Layout, expected: Expected, targets: Sequence[Ost], width: int) -> str | None:
    """Why it would take longer than what Lustre does by itself; None: it does not, by the speeds of now.

    Lustre spreads many files over all OSTs, and each waits for the slowest that it meets; here all share `width`.
    """
    makes = [t for t in targets if t.verdict not in UNUSABLE | {Verdict.SILENT}]
    slowest = min((max(SLOWEST, t.relative_speed or 1.0) for t in makes), default=1.0)
    count = max(c.stripe_count for c in base.components)
    spread = len(makes) if expected.files != 1 else min(len(makes), max(1, count))
    theirs, ours = 1.0 / (max(1, spread) * slowest), 1.0 / width
    if ours < theirs or any(
        t.fill >= NEARLY_FULL for t in targets if t.verdict not in (Verdict.DEAD, Verdict.REFUSING)
    ):
        return None
    return f"{width} good OSTs would take {ours / theirs:.1f} times as long as all of them with the slow one"
