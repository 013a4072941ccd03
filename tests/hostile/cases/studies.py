"""What studies start from: curves, benchmarks, output of IOR."""

from __future__ import annotations

from pathlib import Path

from tarazu.forwarding import curve_csv
from tarazu.forwarding.estimate import database as benchmarks
from tarazu.sim.forwarding import ior, jobs
from tests.hostile.cases.case import DATA, Case, copy, text

TOML = """
[resources]
kind = "ost"
count = 4
nodes = 16
[[job]]
name = "a"
nodes = 2
cpu_s = 10
io_bytes = "1G"
curve = { 1 = 1.0e9, 4 = 3e9 }
"""


def _measured(directory: Path) -> Path:
    from tests.forwarding.estimate.test_database import measured

    path = directory / "benchmarks.csv"
    benchmarks.save(benchmarks.Benchmarks([measured(1, 1e9, "a"), measured(4, 3e9, "b")]), path)
    return path


CASES = (
    Case(
        "curves",
        ("tarazu.forwarding.reading:content", "tarazu.table:Csv.__init__"),
        text("curves.csv", "application,resources,bytes_per_s\nior,1,1e9\nior,4,4e9\n"),
        curve_csv.read,
    ),
    Case(
        "jobs to place",
        (),
        text("jobs.toml", TOML),
        jobs.read,
        100,
    ),
    Case("benchmarks", ("tarazu.table:Csv.__init__",), _measured, benchmarks.load),
    Case(
        "IOR's output",
        (),
        copy(DATA / "ior" / "4.0.0-posix-unique.json"),
        ior.read,
        150,
    ),
)
