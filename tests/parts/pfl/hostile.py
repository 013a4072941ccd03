"""The part's reader of files, from whose valid one `tests/hostile` makes others."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.pfl import listing
from tarazu.parts.pfl.sizes import Halves
from tests.hostile.cases.case import Case, text


def _listed(path: Path) -> None:
    listing.read(str(path), Halves())


CASES = (
    Case(
        "list of files",
        ("tarazu.parts.pfl.listing:read",),
        text("files.txt", "4096 /scratch/a/b\n1073741824 /scratch/a/c d\n12 /scratch/e\\n\n"),
        _listed,
    ),
)
