"""How often what is detected is what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Confusion(NamedTuple):
    """(true, detected) → how often."""

    counts: Counter[tuple[object, object]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[object, object]]) -> Confusion:
        return cls(Counter(pairs))

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def accuracy(self) -> float:
        """Share that is right; 0 for nothing."""
        right = sum(n for (true, seen), n in self.counts.items() if true == seen)
        return right / self.total if self.counts else 0.0

    def recall(self, true: object) -> float:
        """Share of what is there that is detected; 0 for what never was."""
        of = sum(n for (there, _), n in self.counts.items() if there == true)
        return self.counts[true, true] / of if of else 0.0

    def __str__(self) -> str:
        """A table: a row for each that is there, a column for each that was detected."""
        names = sorted({name for pair in self.counts for name in pair}, key=str)
        width = max((len(str(name)) for name in names), default=0) + 2
        head = "is \\ detected"
        rows = [f"{head:<{width + 4}}" + "".join(f"{name!s:>{width}}" for name in names)]
        rows += [
            f"{true!s:<{width + 4}}" + "".join(f"{self.counts[true, seen]:>{width}}" for seen in names)
            for true in names
            if any(self.counts[true, seen] for seen in names)
        ]
        return "\n".join(rows)
