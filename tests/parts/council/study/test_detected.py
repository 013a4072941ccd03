"""What the product detects in simulated situations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.parts.council.study import detected
from tarazu.parts.council.study.requests.situation import SITUATIONS, TABLE_III, WINDOWS
from tarazu.parts.council.study.requests.situations import SHORT_PART

F = SITUATIONS.index(TABLE_III["F"])


@pytest.fixture(scope="module")
def rows() -> list[detected.DetectedRow]:
    return detected.rows(detected.DetectedCase(F, 1, SHORT_PART, ""))


def test_what_is_detected_in_a_situation(rows: list[detected.DetectedRow]) -> None:
    assert [row.window for row in rows] == list(range(len(WINDOWS)))
    seen = detected.spatiality(rows)
    assert seen.total > 50 and seen.accuracy > 0.85, f"\n{seen}"
    assert detected.patterns(rows).accuracy <= seen.accuracy
    assert not detected.spatiality(rows, lambda one: not one.shared).total
    head, line = detected.table(rows).splitlines()
    assert "pattern" in head and line.startswith(str(SITUATIONS[F]))


def test_rows_come_back_from_their_folder(rows: list[detected.DetectedRow], tmp_path: Path) -> None:
    for _ in range(2):
        found = detected.run(tmp_path, [F], part=SHORT_PART, jobs=1)
        assert [(row.found, row.nothing) for row in found.rows] == [(row.found, row.nothing) for row in rows]
    assert found.computed == 0
