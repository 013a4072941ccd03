"""Which levers a council decides on: those of `tune.levers`, or all there are, each with its values."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.tune import levers


class _Nobody:
    """A council sets nothing."""

    def set(self, settings: Sequence[tuple[str, str]]) -> None:
        raise AssertionError("a council sets nothing")


def values_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Lever → its values. Raises BadInput for one that does not exist."""
    made = levers.levers_of(names or levers.NAMES, _Nobody())
    return {name: lever.values for name, lever in made.items()}
