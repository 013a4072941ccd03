"""`tarazu history db show --paper` prints tables 1 and 2 of the paper for two processes that write 8 GiB each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.cli import main
from tarazu.layout import pfl
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.model import JobStep
from tarazu.predict import aipa
from tarazu.store.database import open_database
from tarazu.store.rows import NewFile
from tarazu.trace.records import FileRecord, RunRecord

SIZE = 8 << 30

TABLE_1 = """\
/mnt/lustre/ior/test.0 8,589,934,592 1 0 134,217,728 134,217,728 1 0
/mnt/lustre/ior/test.0 8,589,934,592 2 134,217,728 536,870,912 134,217,728 3 0
/mnt/lustre/ior/test.0 8,589,934,592 3 536,870,912 2,147,483,648 201,326,592 8 0
/mnt/lustre/ior/test.0 8,589,934,592 4 2,147,483,648 8,589,934,592 402,653,184 16 0
/mnt/lustre/ior/test.1 8,589,934,592 1 0 134,217,728 134,217,728 1 1
/mnt/lustre/ior/test.1 8,589,934,592 2 134,217,728 536,870,912 134,217,728 3 1
/mnt/lustre/ior/test.1 8,589,934,592 3 536,870,912 2,147,483,648 201,326,592 8 1
/mnt/lustre/ior/test.1 8,589,934,592 4 2,147,483,648 8,589,934,592 402,653,184 16 1
"""
TABLE_2 = """\
/mnt/lustre/ior/test.0 1,073,741,824 8 0
/mnt/lustre/ior/test.1 1,073,741,824 8 1
"""
HEADER_1 = "File Name File Size Extent ID Extent Start Extent End Stripe Size Stripe Count MPI Rank"
HEADER_2 = "File Name Stripe Size Stripe Count MPI Rank"


def database(path: Path, rules: str) -> Path:
    """What clientd writes for a history of two such runs, before anything is allocated."""
    step = JobStep("lustre", 1000, "ior", "", ranks=2)
    files = tuple(
        FileRecord(f"/ior/test.{r}", "/ior/test.{rank}", "/ior/test.#", r, (r,), 0, 0, 0.1, SIZE)
        for r in (0, 1)
    )
    runs = [RunRecord(step, start, 10.0, "full", files, 2, 2, 2) for start in (1e9, 2e9)]
    forecasts = aipa.forecast(runs, step).files
    policy = LayoutPolicy("paper", "auto", pfl.parse(rules) if rules else ())
    choices = ConfigurationManager(policy, UsableOsts(35)).choose(forecasts)
    with open_database(path) as opened:
        plan = opened.new_plan(step)
        opened.add_files(plan, [NewFile(f, *choice) for f, choice in zip(forecasts, choices, strict=True)])
    return path


@pytest.mark.parametrize(
    ("rules", "header", "table"),
    [
        (
            "[c1]\nmatch = /ior/*\ncomponents = 0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16\n",
            HEADER_1,
            TABLE_1,
        ),
        ("", HEADER_2, TABLE_2),
    ],
)
def test_tables_1_and_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rules: str,
    header: str,
    table: str,
) -> None:
    monkeypatch.setenv("TARAZU_MOUNTS", "/mnt/lustre=lustre")
    path = database(tmp_path / "interaction.db", rules)
    assert main(["history", "db", "show", "--paper", "--database", str(path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line]
    assert lines == [header, *table.splitlines()]
