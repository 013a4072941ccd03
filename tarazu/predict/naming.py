"""Best guesses of the names of one class in the run to come."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tarazu.model import ANY_RANK, JobStep
from tarazu.predict.classes import FileClass
from tarazu.predict.names import Name, next_number, put_together, rank_number, take_apart, widths
from tarazu.trace.records import FileRecord, RunRecord

_RUNS = 4
"""Numbers are continued over this many of the latest runs."""
_SAMPLE = 8
"""Ranks whose names are compared to find what a new rank's name would be."""


class ClassNames:
    """Names of the files of a class by rank and slot; slots and ranks beyond the known ones are continued."""

    def __init__(self, cls: FileClass, runs: Sequence[RunRecord], step: JobStep) -> None:
        self._cls = cls
        self._latest = cls.latest
        self._old_job = runs[cls.reference].step.job_id
        self._new_job = step.job_id
        self._ranks = sorted(self._latest)
        self._with_slot: dict[int, list[int]] = {}
        self._names: dict[tuple[int, int], Name] = {}
        self._numbers: dict[tuple[int, int], tuple[int, ...]] = {}
        self._earlier = self._earlier_files()
        for rank, files in self._latest.items():
            for n, file in enumerate(files):
                name = take_apart(file)
                self._names[rank, n] = name
                self._numbers[rank, n] = self._continued(name, rank, n)
        self._widths: dict[tuple[str, ...], tuple[int, ...]] = {}
        by_parts: dict[tuple[str, ...], list[Name]] = {}
        for name in self._names.values():
            by_parts.setdefault(name.parts, []).append(name)
        for parts, names in by_parts.items():
            self._widths[parts] = widths(names)

    def name(self, rank: int, n: int) -> tuple[str, str]:
        """(key, precise template) of the rank's n-th file."""
        numbers = self._number(rank, n)
        name = self._names[rank, n]
        file = self.donor(rank, n)
        creator = rank
        if self._cls.shared:
            creator = file.creators[0] if len(file.creators) == 1 else ANY_RANK
        return put_together(name, numbers, self._widths[name.parts], creator, self._old_job, self._new_job)

    def donor(self, rank: int, n: int) -> FileRecord:
        """The file of the latest run that is nearest: same rank or the nearest one, same slot or the last."""
        files = self._latest.get(rank)
        if files is None:
            files = self._latest[self._nearest(rank, n)]
        return files[min(n, len(files) - 1)]

    def beyond(self, n: int) -> int:
        """How far slot n is beyond the last one of the latest run."""
        return max(n - len(self._cls.groups) + 1, 0)

    def _number(self, rank: int, n: int) -> tuple[int, ...]:
        known = self._numbers.get((rank, n))
        if known is not None:
            return known
        numbers = self._new_step(rank, n) if rank in self._latest else self._new_rank(rank, n)
        self._numbers[rank, n] = numbers
        return numbers

    def _new_step(self, rank: int, n: int) -> tuple[int, ...]:
        """Continue the rank's own names: those of its last slots."""
        parts = self._name_before(rank, n)
        self._names[rank, n] = parts
        own = []
        for slot in range(max(n - _RUNS, 0), n):
            numbers = self._number(rank, slot)
            if self._names[rank, slot].parts == parts.parts:
                own.append(numbers)
        return tuple(next_number(column) for column in zip(*own))

    def _name_before(self, rank: int, n: int) -> Name:
        self._number(rank, n - 1)
        return self._names[rank, n - 1]

    def _new_rank(self, rank: int, n: int) -> tuple[int, ...]:
        """What the names of the other ranks at this slot say."""
        near = self._nearest(rank, n)
        sample = self._sample(n, near)
        numbers = {r: self._number(r, n) for r in sample}
        name = self._names[near, n]
        same = [r for r in sample if self._names[r, n].parts == name.parts]
        self._names[rank, n] = name
        columns = range(len(numbers[near]))
        return tuple(rank_number({r: numbers[r][j] for r in same}, rank) for j in columns)

    def _nearest(self, rank: int, n: int) -> int:
        having = self._having(n)
        right = bisect_left(having, rank)
        return min(having[max(right - 1, 0) : right + 1], key=lambda r: (abs(r - rank), r))

    def _sample(self, n: int, near: int) -> list[int]:
        having = self._having(n)
        stride = max(len(having) // _SAMPLE, 1)
        return sorted({*having[::stride], having[-1], near})

    def _having(self, n: int) -> list[int]:
        """Ranks that had slot n in the latest run; all of them when none had."""
        if n not in self._with_slot:
            having = [r for r in self._ranks if len(self._latest[r]) > n]
            self._with_slot[n] = having or self._ranks
        return self._with_slot[n]

    def _earlier_files(self) -> dict[tuple[int, int], list[FileRecord]]:
        """(rank, slot) → its files in the runs before the latest, oldest first."""
        found: dict[tuple[int, int], list[FileRecord]] = {}
        for n, group in enumerate(self._cls.groups):
            for t in sorted(group)[-_RUNS:]:
                if t != self._cls.reference:
                    for rank, file in group[t].items():
                        found.setdefault((rank, n), []).append(file)
        return found

    def _continued(self, name: Name, rank: int, n: int) -> tuple[int, ...]:
        """The numbers of a known slot in the next run."""
        names = [take_apart(f) for f in self._earlier.get((rank, n), ())]
        rows = [x.numbers for x in names if x.parts == name.parts] + [name.numbers]
        if all(row == rows[-1] for row in rows):
            return rows[-1]
        return tuple(next_number(column) for column in zip(*rows))
