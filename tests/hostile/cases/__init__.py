"""One case a reader: how its file is made whole, and how the product reads it. See `files.py`."""

from __future__ import annotations

import itertools

from tests.hostile.cases import mdsd, settings, steps, traces
from tests.hostile.cases.case import Case
from tests.of_parts import brought

CASES: tuple[Case, ...] = (
    *settings.CASES,
    *mdsd.CASES,
    *steps.CASES,
    *traces.CASES,
    *itertools.chain(*brought("hostile", "CASES")),
)
