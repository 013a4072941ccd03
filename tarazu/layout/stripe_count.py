"""`layout.stripe_count = auto`: the stripes of all files of a job step together.

Those with which the step is written soonest. The time is the allocator's estimate for plain files on OSTs that are
alike (`tarazu.allocate.timing`: a wave ends when its fullest OST is done, which loses by its streams, and no stream
gets all of an OST), at the best placement (`tarazu.layout.fitting`: a lower bound); no less than what one process needs
that keeps `BUSY` OSTs at work; and for each stripe of a file a price. The fullest OST is never fuller than under the
site's default, also when files are laid on the emptiest OSTs one after the other; and there are never fewer stripes
than the default has, unless every OST gets four objects anyway. Files of one size get one count; files of several sizes
share a target for the bytes of an object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import log2
from typing import NamedTuple

import numpy as np

from tarazu import ranges
from tarazu.layout import fitting
from tarazu.layout.objects import STREAM_LOSS, STREAM_SHARE
from tarazu.layout.stripe_size import contiguous_stripe_size, raid0_stripe_size
from tarazu.lustre import MAX_STRIPE_SIZE_BYTES
from tarazu.units import MIB, human_bytes

NOISE = 1 + 1e-9
BUSY = 8
"""OSTs that one process keeps busy at a time: more stripes of a file that it writes alone do not make it faster."""
OBJECT_REQUESTS = 4
"""What one object costs an OST beside its bytes: to create, to lock, at `stat`, to remove
(docs/benchmarks.md, "What an object costs")."""
REQUEST_S = 0.5e-3
"""Of an OST for a request without bytes, and of the MDS for a create (`tarazu.sim.model.presets`)."""
OST_BYTES_PER_S = 496e6
"""Of a usual OST: Spider II's (`tarazu.sim.model.presets`)."""
OBJECT_BYTES = round(OBJECT_REQUESTS * REQUEST_S * OST_BYTES_PER_S)
"""The price of a stripe, 1 MB: an OST moves so much in the time of those requests. Who opens a file waits for those of
all its stripes, an OST serves those of all its objects; which OSTs a file can be held up by counts in it too."""
ANYWAY = 4
"""Objects on every OST from which a step may have fewer stripes than the default gives it."""
LEAST_OBJECT_BYTES = 1 * MIB
"""Smaller ones are not worth a look: their price is above what they hold."""
MAX_AUTO_STRIPE_COUNT = 160
"""What an MDT without large extended attributes can hold; beyond, only where the default is wider."""
MAX_STRIPES = 2_000_000
"""Of a step; mdsd takes a few times as many in one request."""
MAX_CLASSES = 24
MAX_TARGETS = 2_000
TRIES = 12
"""Counts whose bound is computed with all conditions, after a look at the number of objects alone."""
MAX_LAID = 50_000
"""Objects that are laid on OSTs one after the other; of more the bound says as much."""


class AlikeFiles(NamedTuple):
    """Files that are alike."""

    size_bytes: int
    contiguous: bool = False
    """One stripe per object."""
    writers: int = 1


class Striping(NamedTuple):
    """What one file gets."""

    stripe_count: int
    stripe_size_bytes: int


def striping(file: AlikeFiles, stripe_count: int, own_bytes: int) -> Striping:
    """The stripe size that goes with a count; `own_bytes`: the site's."""
    size = contiguous_stripe_size(file.size_bytes, stripe_count)
    if not file.contiguous or size > MAX_STRIPE_SIZE_BYTES:
        size = raid0_stripe_size(file.size_bytes, stripe_count, own_bytes=own_bytes)
    return Striping(stripe_count, size)


class Choice(NamedTuple):
    """The striping of each class, and why."""

    of: Mapping[AlikeFiles, Striping]
    why: str = ""


def choose(
    files: Mapping[AlikeFiles, int],
    osts: int,
    default: Striping,
    waves: Mapping[AlikeFiles, Mapping[int, int]] | None = None,
) -> Choice | None:
    """The striping of each class; None where only the default is good enough, in more stripes than a plan holds.

    files: how many of each class; osts: that can take an even share, at least one; default: what the site's
    default layout comes to on them; waves: how many of each class are written in which (None: all at one time).
    """
    if not files:
        return Choice({})
    merged = _merge(files, waves or {})
    own = default.stripe_size_bytes
    alike = [
        _Kind(AlikeFiles(m.mean_bytes, m.contiguous, m.writers), m.at_once, m.files, own) for m in merged
    ]
    step = _Step(alike, osts)
    best = step.best(default)
    if best is None:
        return None
    chosen = {
        file: how if isinstance(how, Striping) else striping(file, how, own)
        for m, how in zip(merged, best.hows, strict=True)
        for file in m.classes
    }
    return Choice(chosen, step.why(best, default))


@dataclass(slots=True)
class _Merged:
    """Classes whose sizes differ little; they get one count."""

    contiguous: bool
    writers: int
    classes: list[AlikeFiles] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    waves: Counter[int] = field(default_factory=Counter)

    @property
    def mean_bytes(self) -> int:
        return max(1, self.size_bytes // self.files)

    @property
    def at_once(self) -> int:
        """Files in the wave in which there are most."""
        return max(self.waves.values())


def _merge(files: Mapping[AlikeFiles, int], waves: Mapping[AlikeFiles, Mapping[int, int]]) -> list[_Merged]:
    merged: dict[tuple[float, bool, int], _Merged] = {}
    for step_log2 in (0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 64.0):
        merged = {}
        for file, count in files.items():
            size = max(1, file.size_bytes)
            key = int(log2(size) / step_log2) if step_log2 else size
            # Whether several write it counts, hardly how many.
            writers = 1 << (file.writers.bit_length() - 1)
            into = merged.setdefault((key, file.contiguous, writers), _Merged(file.contiguous, writers))
            into.classes.append(file)
            into.files += count
            into.size_bytes += count * size
            into.waves.update(waves.get(file, {0: count}))
        if len(merged) <= MAX_CLASSES:
            break
    return list(merged.values())


_Sizes = tuple[tuple[int, int], ...]
"""Of the objects of one file that hold any bytes: (bytes, how many), the largest first."""


def _objects(size_bytes: int, s: Striping) -> _Sizes:
    rounds, rest = divmod(size_bytes, s.stripe_size_bytes * s.stripe_count)
    full, part = divmod(rest, s.stripe_size_bytes)
    low = rounds * s.stripe_size_bytes
    objects = ((low + s.stripe_size_bytes, full), (low + part, 1), (low, s.stripe_count - full - 1))
    return tuple((size, count) for size, count in objects if size and count)


_How = Striping | int
"""A stripe count of ours with the stripe size that goes with it, or a striping with the default's own."""


def _count(how: _How) -> int:
    return how.stripe_count if isinstance(how, Striping) else how


@dataclass
class _Kind:
    """One merged class, and its objects by striping."""

    file: AlikeFiles
    files: int
    """That are written at one time."""
    all_files: int
    own_bytes: int
    """The site's stripe size."""
    _known: dict[_How, _Sizes] = field(default_factory=dict)

    def objects(self, how: _How) -> _Sizes:
        if how not in self._known:
            exact = how if isinstance(how, Striping) else striping(self.file, how, self.own_bytes)
            self._known[how] = _objects(self.file.size_bytes, exact)
        return self._known[how]


class _Option(NamedTuple):
    hows: tuple[_How, ...]
    """Of each kind."""
    stripes: int
    """Of what is written at one time."""
    all_stripes: int
    level: float
    """Bytes that the fullest OST has at least, by the number of objects alone."""


class _Step:
    """All files of one step that share a default and a pool."""

    def __init__(self, kinds: Sequence[_Kind], osts: int) -> None:
        self.kinds = kinds
        self.osts = osts

    def best(self, default: Striping) -> _Option | None:
        own = self._option([default] * len(self.kinds))
        allowed, reached = self._exact(own) * NOISE, self._reached(own) * NOISE
        options = [own, *map(self._option, self._without_empty(default))]
        options += map(self._option, self._counts(default.stripe_count))
        options = [o for o in options if o.all_stripes <= MAX_STRIPES]
        best, least = None, float("inf")
        options.sort(key=lambda o: self._cost(o, o.level))
        for tries, option in enumerate(options):
            if self._cost(option, option.level) >= least or (best and tries >= TRIES):
                break
            level = self._exact(option)
            cost = self._cost(option, level)
            if cost < least and level <= allowed and self._reached(option) <= reached:
                best, least = option, cost
        return best

    def _cost(self, option: _Option, level: float) -> float:
        """Bytes that an OST moves until the step is written.

        Who opens a file waits for its own stripes' requests, an OST serves those of all its objects.
        """
        return self._moved(option, level) + self._price(option)

    def _moved(self, option: _Option, level: float) -> float:
        """The same without the price: an OST loses by its streams, and no stream gets all of it."""
        objects = streams = 0
        slowest = 0.0
        for kind, how in self._hows(option):
            number = kind.files * sum(count for _, count in kind.objects(how))
            objects += number
            streams += number * kind.file.writers
            slowest = max(slowest, kind.objects(how)[0][0] / kind.file.writers)
        on_each = max(1.0, streams / min(self.osts, objects))
        return max(level * (1 + STREAM_LOSS * (on_each - 1)), slowest / STREAM_SHARE, self._busy)

    def _price(self, option: _Option) -> float:
        return OBJECT_BYTES * (max(map(_count, option.hows)) + option.stripes / self.osts)

    def why(self, chosen: _Option, default: Striping) -> str:
        """What is gained beside the default, and what the objects cost, in a line."""
        own = self._option([default] * len(self.kinds))
        if [*map(_count, chosen.hows)] == [*map(_count, own.hows)]:
            return f"auto: {default.stripe_count} as by default, no other number pays for its objects"
        counts = ranges.fold(sorted({*map(_count, chosen.hows)}))
        after, before = (human_bytes(round(self._moved(o, self._exact(o)))) for o in (chosen, own))
        price, less = (human_bytes(self._price(o)) for o in (chosen, own))
        return (
            f"auto: {counts} instead of {default.stripe_count}: written in the time that an OST takes for {after} "
            f"instead of {before}; {chosen.all_stripes} objects instead of {own.all_stripes} count as {price} instead "
            f"of {less}"
        )

    @property
    def _busy(self) -> float:
        """Bytes that an OST moves while the process with the most writes its file to as many as it keeps busy."""
        most = BUSY * STREAM_SHARE
        return max(k.file.size_bytes / min(self.osts, most * k.file.writers) for k in self.kinds)

    def _option(self, hows: Sequence[_How]) -> _Option:
        level, at_least, total = 0.0, 0, 0
        for size, count in sorted(self._all(hows), reverse=True):
            at_least += count
            total += size * count
            level = max(level, -(-at_least // self.osts) * size)
        every = sum(kind.all_files * _count(how) for kind, how in zip(self.kinds, hows, strict=True))
        return _Option(tuple(hows), self._stripes(hows), every, max(level, total / self.osts))

    def _stripes(self, hows: Sequence[_How]) -> int:
        return sum(kind.files * _count(how) for kind, how in zip(self.kinds, hows, strict=True))

    def _all(self, hows: Sequence[_How]) -> list[tuple[int, int]]:
        return [
            (size, kind.files * number)
            for kind, how in zip(self.kinds, hows, strict=True)
            for size, number in kind.objects(how)
        ]

    def _reached(self, option: _Option) -> float:
        """Bytes on the fullest OST once all files lie on those that were the emptiest, the largest objects first.

        A placement, where the bound may be below any: files of several sizes, and last stripes that are cut off.
        """
        if option.stripes > MAX_LAID:
            return self._exact(option)
        levels = [0] * self.osts
        for _, files, objects in sorted(
            ((of[0][0], kind.files, of) for kind, how in self._hows(option) if (of := kind.objects(how))),
            reverse=True,
        ):
            of_one = [size for size, number in objects for _ in range(number)]
            for _ in range(files):
                emptiest = [heappop(levels) for _ in of_one]
                for level, size in zip(emptiest, of_one, strict=True):
                    heappush(levels, level + size)
        return float(max(levels))

    def _hows(self, option: _Option) -> Iterator[tuple[_Kind, _How]]:
        return zip(self.kinds, option.hows, strict=True)

    def _exact(self, option: _Option) -> float:
        """The bound in bytes on the fullest OST."""
        largest = [(k.objects(how)[0][0], k.files) for k, how in self._hows(option)]
        every = np.array(self._all(option.hows), np.int64)
        return fitting.lowest_alike(self.osts, every, np.repeat(*np.array(largest, np.int64).T))

    def _without_empty(self, default: Striping) -> Iterator[tuple[Striping, ...]]:
        """The default less the objects that stay empty at these sizes, where that may have fewer stripes."""
        filled = (-(-k.file.size_bytes // default.stripe_size_bytes) for k in self.kinds)
        hows = tuple(default._replace(stripe_count=min(default.stripe_count, n)) for n in filled)
        if self._stripes(hows) >= ANYWAY * self.osts:
            yield hows

    def _counts(self, default: int) -> Iterator[tuple[int, ...]]:
        """Stripe counts of the kinds for every target that is worth a look."""
        widest = max(default, min(self.osts, MAX_AUTO_STRIPE_COUNT))
        sizes = [kind.file.size_bytes for kind in self.kinds]
        highest = [max(1, min(widest, size // LEAST_OBJECT_BYTES)) for size in sizes]
        # More than the highest are tried where that is below the default: what the default has, nobody takes away.
        targets = sorted({-(-s // n) for s, h in zip(sizes, highest) for n in range(1, max(h, default) + 1)})
        most = MAX_TARGETS // len(sizes)
        if len(targets) > most:
            targets = [targets[i * (len(targets) - 1) // (most - 1)] for i in range(most)]
        seen: set[tuple[int, ...]] = set()
        for lowest in {1, default}:
            for target in targets:
                counts = tuple(
                    min(max(-(-s // target), lowest), max(lowest, h)) for s, h in zip(sizes, highest)
                )
                objects = sum(k.files * count for k, count in zip(self.kinds, counts))
                if counts not in seen and (lowest == default or objects >= ANYWAY * self.osts):
                    seen.add(counts)
                    yield counts
