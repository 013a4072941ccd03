"""One case a lever: of the parts that are here."""

from __future__ import annotations

from itertools import chain

from tests.of_parts import brought

from .case import Case

CASES: dict[str, type[Case]] = {case.name: case for case in chain(*brought("lever_case", "CASES"))}
