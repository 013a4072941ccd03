"""What `tarazu config check` says of `[part.forwarding]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.parts.forwarding import PART


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "stripe_counts = true",
            ["part.forwarding.curves or benchmarks, from which stripe counts are taken"],
        ),
        (
            "stripe_counts = true\ncurves = '/none.csv'\n[layout]\nstripe_count = '4'",
            ["layout.stripe_count = auto beside it, found '4'"],
        ),
        ("curves = '{here}/bad.csv'", ["/bad.csv:1"]),
        ("benchmarks = '{here}/bad.csv'", ["/bad.csv:1"]),
        ("benchmarks = '/none.csv'", []),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: list[str]) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    file = tmp_path / "tarazu.toml"
    file.write_text(f"[part.forwarding]\n{text.format(here=tmp_path)}\n")
    found = [str(problem) for problem in PART.problems(config.load(file, {}))]
    assert len(found) == len(said) and all(map(str.__contains__, found, said)), found
