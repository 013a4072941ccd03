"""Which files the plans of a job step leave to Lustre, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tarazu.model import FileName

MOST_NAMED = 50_000
"""Files that are known by name; of others only the number."""


class FilesLeft:
    """Of one step on one file system."""

    def __init__(self) -> None:
        self._of_plans: Counter[str] = Counter()
        self._of_guess: Counter[str] = Counter()
        self.names: dict[str, list[FileName]] = {}
        """Why → which, as far as they are not too many."""

    @property
    def counts(self) -> Counter[str]:
        """Why → how many, of the plans in force: all from histories, and the newest guess."""
        return self._of_plans + self._of_guess

    def add(self, files: Counter[str], *, guess: bool) -> None:
        """Those of one more plan."""
        if guess:
            self._of_guess = files
        else:
            self._of_plans += files

    def name(self, names: Mapping[str, Sequence[FileName]]) -> None:
        """Some of them by name."""
        room = MOST_NAMED - sum(map(len, self.names.values()))
        for why, of_why in names.items():
            if room > 0:
                self.names.setdefault(why, []).extend(of_why[:room])
            room -= len(of_why)
