"""What a benchmark gives: figures, some of them with the most or the least that they may be."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    what: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None
    """Both None: a figure to know, not one to hold."""
    goal: float | None = None
    """The most that it should be; missing it fails nothing."""

    @property
    def holds(self) -> bool:
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    def __str__(self) -> str:
        limits = [f"at most {self.most:g}"] if self.most is not None else []
        limits += [f"at least {self.least:g}"] if self.least is not None else []
        limit = f"   {', '.join(limits)}{'' if self.holds else ': NOT HELD'}" if limits else ""
        goal = f"   goal {self.goal:g}: {'met' if self.value <= self.goal else 'MISSED'}" if self.goal else ""
        return f"  {self.what:<64} {self.value:>12,.4g} {self.unit:<8}{limit}{goal}"
