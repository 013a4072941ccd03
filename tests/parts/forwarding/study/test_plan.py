"""Which IOR runs a site should make: few, for what its history does, and read again as what they were meant to be."""

from __future__ import annotations

import re
import shlex

import msgspec
import pytest
from hypothesis import given, settings

from tarazu.parts.forwarding.estimate import BenchmarkPattern, Benchmarks, Measurement
from tarazu.parts.forwarding.estimate.match import place
from tarazu.parts.forwarding.study.plan import IorPlan, IorRun, Need, command, plan, rounded, setup
from tarazu.trace.phases.phase import Phase
from tarazu.units import GIB, KIB, MIB, parse_bytes
from tests.parts.forwarding.strategies import PATTERNS
from tests.parts.forwarding.strategies import phase as any_phase

PATTERN = BenchmarkPattern("ost", "write", "POSIX", "shared", "contiguous", MIB, 64 * MIB, 64, 8)
NUMBERS = (1, 2, 4)


def phase(size: int, **changes: object) -> Phase:
    given = {"bytes": size, "rank_count": 64, "processes_per_file": 64, "requests": max(1, size // MIB)}
    return any_phase(**{**given, **changes})


def planned(*phases: Phase, benchmarks: Benchmarks | None = None, most: int = 20) -> IorPlan:
    return plan([Need(phases, 8)], benchmarks or Benchmarks(), "ost", NUMBERS, 2, most)


def measured(of: BenchmarkPattern, numbers: tuple[int, ...], repetitions: int = 2) -> list[Measurement]:
    return [Measurement(of, n, 1e9, "test", "", f"{of} {n} {r}") for n in numbers for r in range(repetitions)]


def test_the_first_run_stands_for_the_most_bytes() -> None:
    found = planned(
        phase(4 * GIB), phase(64 * GIB, api="MPI-IO"), phase(4 * GIB), phase(8 * GIB, operation="read")
    )
    assert [r.pattern.api for r in found.runs] == ["MPI-IO", "POSIX"]
    assert [r.share for r in found.runs] == pytest.approx([64 / 80, 16 / 80])
    assert (found.there, found.left) == (0.0, 0.0)


def test_a_run_that_reads_stands_for_the_writes_as_well() -> None:
    (run,) = planned(phase(4 * GIB), phase(4 * GIB, operation="read")).runs
    assert run.pattern.operation == "read" and run.share == 1.0


def test_what_is_near_needs_one_run() -> None:
    sizes = [4 * GIB, 5 * GIB, 6 * GIB]
    assert len(planned(*map(phase, sizes)).runs) == 1
    assert len(planned(phase(4 * GIB), phase(64 * GIB)).runs) == 2


def test_what_was_measured_is_left_out() -> None:
    of = phase(4 * GIB)
    whole = Benchmarks(measured(PATTERN, NUMBERS))
    assert planned(of, benchmarks=whole) == msgspec.structs.replace(planned(), there=1.0)
    for missing in (measured(PATTERN, (1, 4)), [*measured(PATTERN, (1, 4)), *measured(PATTERN, (2,), 1)]):
        (run,) = planned(of, benchmarks=Benchmarks(missing)).runs
        assert run.resources == (2,)
    (run,) = planned(phase(4 * GIB, operation="read"), benchmarks=whole).runs
    assert run.resources == NUMBERS


def test_at_most_so_many_runs_and_what_is_left_is_said() -> None:
    found = planned(phase(64 * GIB), phase(16 * GIB, api="MPI-IO"), most=1)
    assert len(found.runs) == 1 and found.left == pytest.approx(0.2)


def test_nothing_is_needed_without_history() -> None:
    assert planned().runs == () and planned(phase(0)).runs == ()


@settings(max_examples=25)
@given(PATTERNS)
def test_ior_accepts_what_is_rounded(pattern: BenchmarkPattern) -> None:
    words = shlex.split(
        command(IorRun(rounded(pattern), (4,), 1.0), 1, 4, 3, "/l", "srun -N {nodes} -n {processes}")
    )
    transfer, block = (parse_bytes(words[words.index(option) + 1]) for option in ("-t", "-b"))
    assert transfer % 8 == 0 and block % transfer == 0
    segments = int(words[words.index("-s") + 1])
    assert block * segments == rounded(pattern).process_bytes
    assert rounded(rounded(pattern)) == rounded(pattern)


@settings(max_examples=25)
@given(PATTERNS.filter(lambda p: 64 <= p.request_bytes <= p.process_bytes))
def test_rounding_goes_no_farther_than_half_a_doubling(pattern: BenchmarkPattern) -> None:
    away = abs(place(rounded(pattern)) - place(pattern))
    assert away[0] < 0.5 and away[2] == away[3] == 0
    assert away[1] < 1.0


@pytest.mark.parametrize(
    ("changes", "there", "not_there"),
    [
        ({}, ["-a POSIX", "-w", "-t 1M -b 64M -s 1"], ["-r", "-F", "-c", "-C", "-z"]),
        ({"operation": "read"}, ["-w -r -C"], ["-F"]),
        ({"operation": "read", "nodes": 1}, ["-w -r"], ["-C"]),
        ({"sharing": "unique"}, ["-F"], []),
        ({"spatiality": "sequential", "request_bytes": 64 * KIB}, ["-t 64K -b 64K -s 1024"], []),
        ({"spatiality": "collective", "api": "MPI-IO"}, ["-a MPIIO", "-c"], []),
        ({"spatiality": "random"}, ["-z"], []),
    ],
)
def test_options(changes: dict[str, object], there: list[str], not_there: list[str]) -> None:
    run = IorRun(msgspec.structs.replace(PATTERN, **changes), NUMBERS, 1.0)
    line = command(run, 7, 4, 3, "/lustre/my dir/", "mpirun -np {processes}")
    assert line.startswith("mpirun -np 64 ior ") and "-i 3" in line
    assert "-o '/lustre/my dir/tarazu-ost-4/run-007-ost-4'" in line
    assert line.endswith("-O summaryFormat=JSON -O summaryFile=results/run-007-ost-4.json")
    for words in there:
        assert f" {words} " in line
    for words in not_there:
        assert not re.search(rf" {words} ", line)


def test_directories() -> None:
    assert setup("ost", 4, "/l") == "mkdir -p /l/tarazu-ost-4 && lfs setstripe -c 4 /l/tarazu-ost-4"
    assert setup("io-node", 2, "/l/") == "mkdir -p /l/tarazu-io-node-2"
