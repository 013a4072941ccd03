"""The names that the files of one class will have in the run to come, guessed from those before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tarazu.model import ANY_RANK, JobStep
from tarazu.predict.classes import ClassRun, FileClass
from tarazu.predict.name_parts import (
    NameParts,
    index_fields,
    index_number,
    next_number,
    numbers_like,
    put_together,
    rank_number,
    take_apart,
    widen,
)
from tarazu.trace.records import KnownFile, KnownRun

_RUNS = 4
"""Numbers are continued over this many of the latest runs."""
_SAMPLE = 8
"""Ranks whose names are compared to find what a new rank's name would be."""


class NextNames:
    """Names of the files of a class by rank and slot; slots and ranks beyond the known ones are continued."""

    def __init__(self, cls: FileClass, runs: Sequence[KnownRun], step: JobStep) -> None:
        self._cls = cls
        self._latest = cls.latest
        self._steps = [run.step for run in runs]
        self._old, self._new = runs[cls.reference].step, step
        self._ranks = sorted(self._latest)
        self._with_slot: dict[int, list[int]] = {}
        self._continued: dict[tuple[int, int], tuple[NameParts, tuple[int, ...]]] = {}
        """(rank, slot) that the latest run does not have → its name."""
        self._before: dict[int, list[tuple[int, ClassRun]]] = {}
        """The slot asked for last → the latest runs that have it, without the reference run."""
        by_parts: dict[tuple[str, ...], list[int]] = {}
        for files in self._latest.values():
            for file in files:
                widen(by_parts, take_apart(file))
        self._widths = {parts: tuple(widths) for parts, widths in by_parts.items()}

    def name(self, rank: int, n: int) -> tuple[str, str]:
        """(key, precise template) of the rank's n-th file."""
        name, numbers = self._name(rank, n)
        creator = rank
        if self._cls.shared:
            file = self.donor(rank, n)
            creator = file.creator if file.creator_count == 1 else ANY_RANK
        return put_together(name, numbers, self._widths[name.parts], creator, self._old, self._new)

    def donor(self, rank: int, n: int) -> KnownFile:
        """The file of the latest run that is nearest: same rank or the nearest one, same slot or the last."""
        files = self._latest.get(rank)
        if files is None:
            files = self._latest[self._nearest(rank, n)]
        return files[min(n, len(files) - 1)]

    def beyond(self, n: int) -> int:
        """How far slot n is beyond the last one of the latest run."""
        return max(n - self._cls.slots + 1, 0)

    def _name(self, rank: int, n: int) -> tuple[NameParts, tuple[int, ...]]:
        """The name that is continued, and the numbers that it gets."""
        files = self._latest.get(rank)
        if files is not None and n < len(files):
            return self._known(files[n], rank, n)
        name = self._continued.get((rank, n))
        if name is None:
            name = self._new_step(rank, n) if files is not None else self._new_rank(rank, n)
            self._continued[rank, n] = name
        return name

    def _known(self, file: KnownFile, rank: int, n: int) -> tuple[NameParts, tuple[int, ...]]:
        """A slot of the latest run: its numbers in the next run."""
        name = take_apart(file)
        if n not in self._before:
            having = self._cls.having(n)[-_RUNS:]
            self._before = {n: [(t, self._cls.runs[t]) for t in having if t != self._cls.reference]}
        earlier = [(t, run.find(n, rank)) for t, run in self._before[n]]
        last = name.numbers
        if all(f is None or f.precise == file.precise for _, f in earlier):
            return name, self._of_task(file, last)  # those that stand for the rank stay
        alike = [(t, numbers) for t, f in earlier if f and (numbers := numbers_like(f, name)) is not None]
        indices = [self._steps[t].array_index for t in (*(t for t, _ in alike), self._cls.reference)]
        new = tuple(
            next_number(column)
            if (index := index_number(column, indices, self._new.array_index)) is None
            else index
            for column in zip(*(numbers for _, numbers in alike), last)
        )
        return name, self._of_task(file, new)

    def _of_task(self, file: KnownFile, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Numbers that are the index of a task of a job array, as the new task's."""
        index = self._new.array_index
        if index is None or "{array}" not in file.precise:
            return numbers
        return tuple(
            index if is_index else number
            for number, is_index in zip(numbers, index_fields(file), strict=True)
        )

    def _new_step(self, rank: int, n: int) -> tuple[NameParts, tuple[int, ...]]:
        """Continue the rank's own names: those of its last slots."""
        first = n
        while first > len(self._latest[rank]) and (rank, first - 1) not in self._continued:
            first -= 1
        for slot in range(first, n):
            self._name(rank, slot)  # one after another: thousands of them would exhaust the stack
        last, _ = self._name(rank, n - 1)
        own = []
        for slot in range(max(n - _RUNS, 0), n):
            name, numbers = self._name(rank, slot)
            if name.parts == last.parts:
                own.append(numbers)
        return last, tuple(next_number(column) for column in zip(*own))

    def _new_rank(self, rank: int, n: int) -> tuple[NameParts, tuple[int, ...]]:
        """What the names of the other ranks at this slot say."""
        near = self._nearest(rank, n)
        names = {r: self._name(r, n) for r in self._sample(n, near)}
        name, numbers = names[near]
        same = {r: row for r, (other, row) in names.items() if other.parts == name.parts}
        columns = range(len(numbers))
        return name, tuple(rank_number({r: row[j] for r, row in same.items()}, rank) for j in columns)

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
            self._with_slot = {n: having or self._ranks}
        return self._with_slot[n]
