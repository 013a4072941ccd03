"""The part's readers of files, from whose valid ones `tests/hostile` makes others."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.whatif.ior import results, words
from tests.hostile.cases.case import DATA, Case, copy


def _lost(path: Path) -> None:
    """As a file and as one of its folder."""
    for found in (str(path), str(path.parent)):
        results.is_ior(found)
        for of in results.read(found):
            words.answer(found, of.lost)


_SITES = tuple(f"tarazu.parts.whatif.ior.results:{name}" for name in ("is_ior", "_text", "_texts"))
CASES = (
    Case("results of IO500", _SITES, copy(DATA / "ior" / "io500" / "ior-easy-write.txt"), _lost),
    Case("table of IOR's ranks", (), copy(DATA / "ior" / "io500" / "ior-easy-write.csv"), _lost),
)
