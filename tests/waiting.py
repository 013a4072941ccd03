"""Waiting for what is to come, on a machine that may be busy: for an event, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LONG_S = 300.0
"""What does not come within this time does not come."""

Value = TypeVar("Value")


def until(
    holds: Callable[[], Value], what: Callable[[], object] = lambda: "", pause_s: float = 0.05
) -> Value:
    """What holds, as soon as it is true; fails with `what()` when it never is."""
    deadline = time.monotonic() + LONG_S
    while not (value := holds()):
        assert time.monotonic() < deadline, what()
        time.sleep(pause_s)
    return value
