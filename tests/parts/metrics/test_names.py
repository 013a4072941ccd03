"""Metrics that the pages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarazu.part import installed
from tests.docs.reading import PAGES, blocks, spans

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_metrics_that_are_named_exist(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import metric_table  # type: ignore[import-not-found]

    families = {family for part in installed().values() for family in metric_table.of_part(part)}
    known = {family.name for family in families} | {
        f"{family.name}_{part}"
        for family in families
        if family.kind == "histogram"
        for part in ("bucket", "sum", "count")
    }
    named = {
        found
        for _, text in (*spans(page), *((block.line, block.text) for block in blocks(page)))
        for found in re.findall(
            r"\btarazu_(?:target|server|mdsd|ossd|clientd|council|announcer|bursts|changes)_\w+", text
        )
    }
    assert named - known == set()
