"""One case a lever."""

from __future__ import annotations

from itertools import chain

from tests.of_parts import brought

from ..case import Case
from .drain import DrainCase
from .files import FilesCase

CASES: dict[str, type[Case]] = {
    case.name: case
    for case in (
        DrainCase,
        FilesCase,
        *chain(*brought("lever_case", "CASES")),
    )
}
