"""Every log whose command line is known gives the phases that the command must make."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tarazu.trace.darshan.log import DarshanLog
from tarazu.trace.darshan.read import read
from tarazu.trace.phases.darshan import phases
from tarazu.trace.phases.phase import Phase
from tests.trace.phases.commands import Expected, expected

DATA = Path(__file__).parents[2] / "data"
INDEX = {row["file"]: row for row in csv.DictReader((DATA / "phases/INDEX.csv").read_text().splitlines())}
SERIAL = [name for name in INDEX if name.startswith("ser_")]
PARTIAL = "ior_posix_fpp_n8_i6_m_partial.darshan"
"""Darshan kept four files of each rank."""


def log_of(name: str) -> DarshanLog:
    found = DATA / "traces" / name
    return read(found if found.exists() else DATA / "phases" / name)


def seen(phase: Phase, log: DarshanLog) -> Expected:
    assert phase.rank_count == log.ranks and phase.ranks in (None, tuple(range(log.ranks)))
    return Expected(
        phase.operation,
        phase.api,
        phase.sharing,
        phase.spatiality,
        phase.bytes,
        phase.requests,
        phase.files,
        phase.processes_per_file,
        dict(phase.request_sizes),
    )


def test_there_is_a_log_for_every_line() -> None:
    assert len(INDEX) == 68 and len(SERIAL) == 5


@pytest.mark.parametrize("name", sorted(set(INDEX) - {*SERIAL, PARTIAL}))
def test_phases_are_those_of_the_command(name: str) -> None:
    row, log = INDEX[name], log_of(name)
    must = expected(row["command"], log.ranks)
    assert sum(one.bytes for one in must if one.operation == "write") == int(row["bytes_written"])
    found = phases(log)
    data = [phase for phase in found if phase.api == must[0].api]
    # OMPIO's notes of 40 bytes beside the data, and the checkpoint program's messages.
    rest = [phase for phase in found if phase.api != must[0].api]
    assert sum(phase.bytes for phase in rest) < 1e-4 * sum(phase.bytes for phase in data)
    assert len(data) == len(must)
    for phase, one in zip(data, must, strict=True):
        of = seen(phase, log)
        assert of == one._replace(
            requests=of.requests if one.requests is None else one.requests,
            sizes=of.sizes if one.sizes is None else one.sizes,
        )
        assert 0 < phase.io_s <= phase.end_s - phase.start_s + 1e-9
        assert 0 < phase.start_s < phase.end_s <= log.run_time_s + 0.05


def test_a_partial_log_gives_what_it_has() -> None:
    log = log_of(PARTIAL)
    (must,) = expected(INDEX[PARTIAL]["command"], log.ranks)
    (found,) = phases(log)
    assert log.partial and (found.files, found.bytes) == (8 * 4, 8 * 4 << 20) and found.files < must.files
    assert (found.sharing, found.spatiality, found.processes_per_file) == ("unique", "contiguous", 1)


SERIAL_MUST = {
    "ser_dd.darshan": ("POSIX", 1, 16),
    "ser_python_open.darshan": ("POSIX", 5, 4 * 8 + 1),
    "ser_numpy_tofile.darshan": ("STDIO", 5, None),
    "ser_fortran_openwrite.darshan": ("POSIX", 7, None),
}
"""API, files and requests of what each writes below its directory."""


@pytest.mark.parametrize("name", SERIAL_MUST)
def test_serial_programs(name: str) -> None:
    api, files, requests = SERIAL_MUST[name]
    found = [
        p
        for p in phases(log_of(name), wanted=lambda path: path.startswith("/scratch/run/"))
        if p.operation == "write"
    ]
    main = [p for p in found if p.api == api]
    assert sum(p.files for p in main) == files
    assert sum(p.bytes for p in found) == int(INDEX[name]["bytes_written"])
    assert all(p.sharing == "unique" and p.processes_per_file == 1 and p.ranks == (0,) for p in found)
    if requests:
        assert sum(p.requests for p in main) == requests and main[0].spatiality == "contiguous"


def test_what_darshan_does_not_see_is_no_phase() -> None:
    assert phases(log_of("ser_cp.darshan")) == ()
