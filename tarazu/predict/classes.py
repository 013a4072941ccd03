"""Files of several runs aligned: classes of one loose template, and in each class groups of the same slot.

A group is what the forecast treats as one series: the n-th file of a class in every run, over all ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from tarazu.model import ANY_RANK
from tarazu.trace.records import FileRecord, RunRecord

STABLE_SHARE = 0.8
"""Names are stable when this share of a run's templates was in the run before."""

ByRank = dict[int, list[FileRecord]]
Group = dict[int, dict[int, FileRecord]]
"""Run (index into the history) → rank → file."""


class FileClass(msgspec.Struct, frozen=True):
    """Files of one loose template, either each of one rank or each of several."""

    loose: str
    shared: bool
    by_run: dict[int, ByRank]
    """Run → rank → files in order of creation."""
    reference: int
    """The latest run that has the class."""
    groups: tuple[Group, ...]
    """One per file of the rank with the most files in the reference run."""

    @property
    def latest(self) -> ByRank:
        return self.by_run[self.reference]

    def counts(self) -> list[tuple[int, float]]:
        """(run, files per creating rank)."""
        return [(t, sum(map(len, ranks.values())) / len(ranks)) for t, ranks in sorted(self.by_run.items())]


def usable(history: Sequence[RunRecord], warn: Callable[[str], None]) -> list[RunRecord]:
    """Runs without those that visibly lack files: failed, lost spools, partial logs, missing ranks."""
    runs: list[RunRecord] = []
    normal = 0.0
    for run in history:
        if not run.files:
            continue
        per_rank = len(run.files) / max(run.step.ranks, 1)
        if runs and _suspicious(run, runs) and per_rank < 0.95 * normal:
            warn(f"run of {run.start_s:.0f} left out: it has {len(run.files)} files and signs of loss")
            continue
        runs.append(run)
        normal = median(len(r.files) / max(r.step.ranks, 1) for r in runs[-5:])
    if len(runs) > 1 and _suspicious(runs[0], runs[1:]):
        first = len(runs[0].files) / max(runs[0].step.ranks, 1)
        if first < 0.95 * normal:
            del runs[0]
    return runs


def _suspicious(run: RunRecord, others: Sequence[RunRecord]) -> bool:
    """Processes that never create a file may leave no spool: what counts is fewer ranks than usual."""
    if run.exit_status or run.dropped_records or run.lost_bytes or run.partial:
        return True
    shares = [r.ranks_seen / max(r.ranks_expected, 1) for r in others]
    return run.ranks_seen / max(run.ranks_expected, 1) < 0.95 * median(shares)


def classes(runs: Sequence[RunRecord]) -> list[FileClass]:
    """Classes that the next run is expected to have, in order of their first file in the latest run."""
    sorted_out: defaultdict[tuple[str, bool], dict[int, ByRank]] = defaultdict(dict)
    for t, run in enumerate(runs):
        for file in sorted(run.files, key=lambda f: (f.nth_loose, f.at_s, f.key)):
            of_run = sorted_out[file.loose, file.rank == ANY_RANK].setdefault(t, {})
            of_run.setdefault(file.rank, []).append(file)
    expected = [
        _aligned(loose, shared, by_run)
        for (loose, shared), by_run in sorted_out.items()
        if _expected(set(by_run), len(runs))
    ]
    return sorted(expected, key=lambda c: min(f.at_s for files in c.latest.values() for f in files))


def _expected(present: set[int], runs: int) -> bool:
    """In the latest run; or in every second one before it."""
    last = runs - 1
    if last in present:
        return True
    return last - 2 not in present and {last - 1, last - 3} <= present


def _aligned(loose: str, shared: bool, by_run: dict[int, ByRank]) -> FileClass:
    reference = max(by_run)
    latest = by_run[reference]
    groups: list[Group] = [{} for _ in range(max(map(len, latest.values())))]
    earlier = [t for t in by_run if t < reference]
    stable = bool(earlier) and _stable(latest, by_run[max(earlier)])
    known = _slots(latest) if stable else {}
    for t, ranks in by_run.items():
        for rank, files in ranks.items():
            for n, file in enumerate(files):
                slot: int | None = n
                if stable and t != reference:
                    name = (file.precise, file.nth_precise)
                    slot = known.get((rank, *name), known.get((None, *name)))
                if slot is not None and slot < len(groups):
                    groups[slot].setdefault(t, {}).setdefault(rank, file)
    return FileClass(loose, shared, by_run, reference, tuple(groups))


def _stable(latest: ByRank, before: ByRank) -> bool:
    old = {(r, f.precise, f.nth_precise) for r, files in before.items() for f in files}
    new = [(r, f.precise, f.nth_precise) for r, files in latest.items() if r in before for f in files]
    return bool(new) and sum(n in old for n in new) >= STABLE_SHARE * len(new)


def _slots(latest: ByRank) -> dict[tuple[int | None, str, int], int]:
    """(rank, precise, n) → slot; with rank None where all ranks agree on it."""
    found: dict[tuple[int | None, str, int], int] = {}
    ambiguous = set()
    for rank, files in latest.items():
        for n, file in enumerate(files):
            name = (file.precise, file.nth_precise)
            found.setdefault((rank, *name), n)
            if found.setdefault((None, *name), n) != n:
                ambiguous.add((None, *name))
    for key in ambiguous:
        del found[key]
    return found
