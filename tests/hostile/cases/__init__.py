"""One case a reader: how its file is made whole, and how the product reads it. See `files.py`."""

from __future__ import annotations

from tests.hostile.cases import changes, forwarding, mdsd, settings, steps, studies, traces
from tests.hostile.cases.case import Case

CASES: tuple[Case, ...] = (
    *settings.CASES,
    *changes.CASES,
    *mdsd.CASES,
    *steps.CASES,
    *traces.CASES,
    *forwarding.CASES,
    *studies.CASES,
)
