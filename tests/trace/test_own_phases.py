from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tarazu.errors import TraceError
from tarazu.model import ANY_RANK, JobStep
from tarazu.trace import own_phases as own
from tarazu.trace.parser import parse_runs
from tarazu.trace.phases.phase import Phase
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run, read_run
from tarazu.trace.spool import parse_spools

STEP = JobStep(fs_name="lustre", uid=1000, application="app", job_id="1", ranks=2)
Make = dict[str, Callable[..., Any]]


def run_of(spools: Make, **close: Any) -> RunRecord:
    """Two ranks, a file of 100 bytes each."""
    content = [
        spools["create"](f"/f.{rank}", f"/f.{rank}", "/f.#", at_s=1.0)
        + spools["close"](f"/f.{rank}", 100, at_s=3.0 + rank, **close)
        for rank in (0, 1)
    ]
    parsed = [parse_spools(spools["spool"]([of], rank=rank, ranks=2))[0] for rank, of in enumerate(content)]
    return parse_runs(parsed, STEP)["lustre"]


def test_a_recorded_run_keeps_its_phases(spools: Make) -> None:
    (phase,) = run_of(spools).phases
    assert (phase.operation, phase.api, phase.sharing, phase.files) == ("write", "POSIX", "unique", 2)
    assert (phase.bytes, phase.requests, phase.spatiality) == (200, 2, "contiguous")
    assert (phase.end_s, phase.ranks) == (4.0, (0, 1))


def test_what_it_cannot_know_is_unknown(spools: Make) -> None:
    (strided,) = run_of(spools, segments=1, written=60).phases
    assert strided.bytes == 120
    (light,) = run_of(spools, flags=0).phases
    assert (light.requests, light.spatiality, light.bytes) == (0, "unknown", 200)


def test_phases_are_part_of_the_run_file(spools: Make, tmp_path: Any) -> None:
    run = run_of(spools)
    path = tmp_path / "x.run"
    path.write_bytes(encode_run(run))
    assert read_run(path) == run and own.phases(read_run(path)) == run.phases


@pytest.mark.parametrize("value", ["-1", "1e300", "NaN"])
def test_phases_that_cannot_be_are_refused(spools: Make, tmp_path: Any, value: str) -> None:
    path = tmp_path / "x.run"
    text = encode_run(run_of(spools)).decode()
    path.write_text(text.replace('"end_s": 4.0', f'"end_s": {value}'))
    with pytest.raises(TraceError, match="header of a run"):
        read_run(path)


def test_of_a_run_without_phases_its_creations_are_what_is_known() -> None:
    shared = FileRecord("/s", "/s", "/s", ANY_RANK, (0, 1), 0, 0, 5.0, 80, 80, writers=2, counted=True)
    mine = FileRecord("/m", "/m", "/m", 1, (1,), 0, 0, 5.5, 20)
    found = own.phases(RunRecord(STEP, 0.0, 10.0, "full", (shared, mine)))
    assert [(p.sharing, p.bytes, p.start_s, p.io_s) for p in found] == [
        ("shared", 80, 5.0, 0.0),
        ("unique", 20, 5.5, 0.0),
    ]
    assert all((p.requests, p.spatiality) == (0, "unknown") for p in found)


def test_not_more_is_kept_than_a_header_holds() -> None:
    everyone = tuple(range(100_000))
    many = [
        Phase(
            start_s=float(i), end_s=i + 1.0, operation="write", ranks=everyone, rank_count=100_000,
            bytes=i, io_s=1.0, api="POSIX", requests=1, spatiality="unknown", sharing="unique", files=1,
            processes_per_file=1,
        )
        for i in range(300)
    ]  # fmt: skip
    found = own.kept(many)
    assert len(found) == own.MOST_KEPT and found[0].bytes == 100 and found[0].ranks is None
    assert len(msgspec.json.encode(found)) < 1 << 20
