"""One comparison: what was expected, what the simulator found, and how far apart they may be."""

from __future__ import annotations

import msgspec


class ValidationRow(msgspec.Struct, frozen=True):
    """A line of `tarazu sim validate`."""

    name: str
    """Of the validation and its case: `closed form: one flow`."""
    quantity: str
    """What is compared, with its unit: `finish, s`."""
    expected: float
    found: float
    error: float
    """As `limit` counts it; relative (0.02 is 2 %) unless `quantity` says otherwise."""
    limit: float
    """The greatest error that passes; inf: shown beside one another, not judged."""
    source: str
    """What `expected` rests on: a formula, a program, a table of the paper."""

    @property
    def passed(self) -> bool:
        return self.error <= self.limit


def relative(
    name: str, quantity: str, expected: float, found: float, limit: float, source: str
) -> ValidationRow:
    """A row judged by |found - expected| / |expected|; by |found| where 0 is expected."""
    error = abs(found - expected) / (abs(expected) or 1.0)
    return ValidationRow(name, quantity, expected, found, error, limit, source)
