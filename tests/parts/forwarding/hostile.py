"""The part's messages and files, from which `tests/hostile` makes others; its readers without a case, and why."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tarazu.parts.forwarding import curve_csv, loaded
from tarazu.parts.forwarding.estimate import database as benchmarks
from tarazu.parts.forwarding.messages import CountRequest, StepProfile
from tarazu.parts.forwarding.study import ior, jobs
from tarazu.wire.messages import PartRequest
from tests.hostile.cases.case import DATA, Case, copy, text
from tests.hostile.cases.traces import SPOOL, one_spool

LEFT = {
    "tarazu.parts.forwarding.clientd:stripe_count": "clientd's own words, and mdsd's",
    "tarazu.parts.forwarding.forecast:profiled": "clientd's own words",
}
PROFILE = StepProfile(4, 10.0, 1e9, ((1, 1e9), (2, 1.5e9)), 2)

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


def requests() -> list[PartRequest]:
    count = CountRequest("h3", "lustre", "job", PROFILE, 20.0)
    return [PartRequest("m8", "forwarding", msgspec.msgpack.encode(count), 4242)]


def _measured(directory: Path) -> Path:
    from tests.parts.forwarding.estimate.test_database import measured

    path = directory / "benchmarks.csv"
    benchmarks.save(benchmarks.Benchmarks([measured(1, 1e9, "a"), measured(4, 3e9, "b")]), path)
    return path


CASES = (
    Case(
        "curves",
        ("tarazu.table:Csv.__init__",),
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
    Case("phases of a spool", ("tarazu.parts.forwarding.loaded:load", SPOOL), one_spool, loaded.load, 40),
    Case(
        "IOR's output",
        (),
        copy(DATA / "ior" / "4.0.0-posix-unique.json"),
        ior.read,
        150,
    ),
)
