"""Files of several runs aligned: classes of one loose template, and in each class groups of the same slot.

A group is what the forecast treats as one series: the n-th file of a class in every run, over all ranks.
Histories may hold a million files: a class keeps them in one list per run, sorted by slot and rank.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter
from statistics import median

import msgspec

from tarazu.model import ANY_RANK
from tarazu.trace.records import KnownFile, KnownRun
from tarazu.units import counted

STABLE_SHARE = 0.8
"""Names are stable when this share of a run's templates was in the run before."""
MOST_CLASSES = 10_000
"""Templates of one application; beyond, those of the fewest bytes are not forecast."""

ByRank = dict[int, list[KnownFile]]
_rank, _nth, _time = attrgetter("rank"), attrgetter("nth_loose"), attrgetter("at_s")


class ClassRun(msgspec.Struct, frozen=True):
    """The files of a class in one run, by slot, in a slot by rank."""

    files: list[KnownFile]
    starts: array[int]
    """Index of each slot's first file, and the number of files: slots + 1 entries."""
    per_rank: float
    """Files per creating rank, also those without a slot."""

    def slot(self, n: int) -> list[KnownFile]:
        return self.files[self.starts[n] : self.starts[n + 1]]

    def find(self, n: int, rank: int) -> KnownFile | None:
        """The rank's file in slot `n`."""
        low, high = self.starts[n], self.starts[n + 1]
        if low == high:
            return None
        guess = low + rank - self.files[low].rank  # where no rank is left out
        if low <= guess < high and self.files[guess].rank == rank:
            return self.files[guess]
        at = bisect_left(self.files, rank, low, high, key=_rank)
        return self.files[at] if at < high and self.files[at].rank == rank else None


class FileClass(msgspec.Struct, frozen=True):
    """Files of one loose template, either each of one rank or each of several."""

    loose: str
    shared: bool
    runs: dict[int, ClassRun]
    """Run (index into the history) → its files; oldest first."""
    reference: int
    """The latest run that has the class."""
    latest: ByRank
    """Rank → its files in the reference run, in order of creation."""
    slots: int
    """Number of groups: files of the rank with the most files in the reference run."""

    def counts(self) -> list[tuple[int, float]]:
        """(run, files per creating rank)."""
        return [(t, run.per_rank) for t, run in self.runs.items()]

    def having(self, n: int) -> list[int]:
        """Runs that have a file in slot `n`, oldest first; always the reference run."""
        return [t for t, run in self.runs.items() if run.starts[n] < run.starts[n + 1]]


def usable(history: Sequence[KnownRun], warn: Callable[[str], None]) -> list[KnownRun]:
    """Runs without those that visibly lack files: failed, lost spools, partial logs, missing ranks."""
    runs: list[KnownRun] = []
    normal = 0.0
    for run in history:
        if not run.files:
            continue
        per_rank = len(run.files) / max(run.step.ranks, 1)
        if runs and _suspicious(run, runs) and per_rank < 0.95 * normal:
            warn(
                f"run of {run.start_s:.0f} left out: it has {counted(len(run.files), 'file')} and signs of loss"
            )
            continue
        runs.append(run)
        normal = median(len(r.files) / max(r.step.ranks, 1) for r in runs[-5:])
    if len(runs) > 1 and _suspicious(runs[0], runs[1:]):
        first = len(runs[0].files) / max(runs[0].step.ranks, 1)
        if first < 0.95 * normal:
            del runs[0]
    return runs


def _suspicious(run: KnownRun, others: Sequence[KnownRun]) -> bool:
    """Processes that never create a file may leave no spool: what counts is fewer ranks than usual."""
    if run.exit_status or run.dropped_records or run.lost_bytes or run.partial:
        return True
    shares = [r.ranks_seen / max(r.ranks_expected, 1) for r in others]
    return run.ranks_seen / max(run.ranks_expected, 1) < 0.95 * median(shares)


def classes(runs: Sequence[KnownRun], warn: Callable[[str], None] = lambda _: None) -> list[FileClass]:
    """Classes that the next run is expected to have, in order of their first file in the latest run."""
    sorted_out: defaultdict[tuple[str, bool], dict[int, list[KnownFile]]] = defaultdict(dict)
    for t, run in enumerate(runs):
        for file in run.files:
            by_run = sorted_out[file.loose, file.rank == ANY_RANK]
            if t in by_run:
                by_run[t].append(file)
            else:
                by_run[t] = [file]
    chosen = {c: by_run for c, by_run in sorted_out.items() if _expected(set(by_run), len(runs))}
    sorted_out.clear()
    if len(chosen) > MOST_CLASSES:
        warn(f"{len(chosen) - MOST_CLASSES} of {len(chosen)} templates left out, those of the fewest bytes")
        size = {c: sum(f.size_bytes for f in by_run[max(by_run)]) for c, by_run in chosen.items()}
        chosen = {c: chosen[c] for c in sorted(size, key=size.__getitem__, reverse=True)[:MOST_CLASSES]}
    expected = []
    while chosen:
        (loose, shared), by_run = chosen.popitem()
        expected.append(_aligned(loose, shared, by_run))
    expected.reverse()
    return sorted(expected, key=lambda c: min(f.at_s for files in c.latest.values() for f in files))


def _expected(present: set[int], runs: int) -> bool:
    """In the latest run; or in every second one before it."""
    last = runs - 1
    if last in present:
        return True
    return last - 2 not in present and {last - 1, last - 3} <= present


def _aligned(loose: str, shared: bool, by_run: dict[int, list[KnownFile]]) -> FileClass:
    for files in by_run.values():
        # One number at a time: each of these sorts finds its list nearly sorted or compares plain numbers.
        files.sort(key=_time)
        files.sort(key=_nth)
        files.sort(key=_rank)
    reference = max(by_run)
    latest: ByRank = {}
    for file in by_run[reference]:
        latest.setdefault(file.rank, []).append(file)
    slots = max(map(len, latest.values()))
    earlier = [t for t in by_run if t < reference]
    stable = bool(earlier) and _stable(latest, by_run[max(earlier)])
    known = _Slots(latest) if stable else None
    runs = {t: _class_run(files, slots, known if t != reference else None) for t, files in by_run.items()}
    return FileClass(loose, shared, runs, reference, latest, slots)


def _class_run(files: list[KnownFile], slots: int, known: _Slots | None) -> ClassRun:
    """`files` by rank and order of creation → by slot: where names are stable that of the name, else the n-th."""
    cells: list[list[KnownFile]] = [[] for _ in range(slots)]
    rank, n, ranks = None, 0, 0
    for file in files:
        if file.rank != rank:
            rank, n = file.rank, 0
            ranks += 1
        slot = n if known is None else known.of(file)
        n += 1
        if 0 <= slot < slots and not (cells[slot] and cells[slot][-1].rank == rank):
            cells[slot].append(file)
    starts = array("L", accumulate(map(len, cells), initial=0))
    return ClassRun([f for cell in cells for f in cell], starts, len(files) / ranks)


def _stable(latest: ByRank, before: Sequence[KnownFile]) -> bool:
    old = {(f.rank, f.precise, f.nth_precise) for f in before}
    ranks = {f.rank for f in before}
    new = [(r, f.precise, f.nth_precise) for r, files in latest.items() if r in ranks for f in files]
    return bool(new) and sum(n in old for n in new) >= STABLE_SHARE * len(new)


class _Slots:
    """The slot of each name in the latest run, of any rank where all ranks agree on it."""

    def __init__(self, latest: ByRank) -> None:
        self._any: dict[tuple[str, int], int] = {}
        """(precise, n) → slot; −1 where ranks differ."""
        self._own: dict[tuple[int, str, int], int] = {}
        for files in latest.values():
            for n, file in enumerate(files):
                name = (file.precise, file.nth_precise)
                if self._any.setdefault(name, n) != n:
                    self._any[name] = -1
        if -1 in self._any.values():
            for rank, files in latest.items():
                for n, file in enumerate(files):
                    if self._any[file.precise, file.nth_precise] < 0:
                        self._own.setdefault((rank, file.precise, file.nth_precise), n)

    def of(self, file: KnownFile) -> int:
        """The slot; −1 for none."""
        slot = self._any.get((file.precise, file.nth_precise), -1)
        if slot >= 0 or not self._own:
            return slot
        return self._own.get((file.rank, file.precise, file.nth_precise), -1)
