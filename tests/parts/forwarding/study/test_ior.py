"""IOR's output, as IOR 3.3.0 and 4.0.0 wrote it (tests/data/ior)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tarazu.errors import BadInput
from tarazu.parts.forwarding.estimate import BenchmarkPattern
from tarazu.parts.forwarding.study import ior
from tarazu.units import MIB

DATA = Path(__file__).parents[3] / "data" / "ior"
VERSIONS = ("3.3.0", "4.0.0")
KIB = 1024


def output(version: str = "4.0.0", name: str = "posix-shared") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{version}-{name}.json").read_text())
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_patterns(version: str) -> None:
    told = {"mpiio-collective": ior.Told(None, 3), "posix-random": ior.Told("io-node", 2)}
    found = {
        name: ior.read(DATA / f"{version}-{name}.json", told.get(name, ior.NOTHING))
        for name in ("posix-shared", "posix-strided", "posix-unique", "mpiio-collective", "posix-random")
    }
    patterns = {name: list(dict.fromkeys((m.resources, m.pattern) for m in of)) for name, of in found.items()}
    shared, unique = ("POSIX", "shared"), ("POSIX", "unique")
    assert patterns == {
        "posix-shared": [
            (4, BenchmarkPattern("ost", "write", *shared, "contiguous", 64 * KIB, 2 * MIB, 4, 1)),
            (4, BenchmarkPattern("ost", "read", *shared, "contiguous", 64 * KIB, 2 * MIB, 4, 1)),
        ],
        "posix-strided": [
            (4, BenchmarkPattern("ost", "write", *shared, "sequential", 16 * KIB, 512 * KIB, 4, 1))
        ],
        "posix-unique": [
            (2, BenchmarkPattern("io-node", "write", *unique, "contiguous", 256 * KIB, MIB, 2, 1)),
            (2, BenchmarkPattern("io-node", "read", *unique, "contiguous", 256 * KIB, MIB, 2, 1)),
        ],
        "mpiio-collective": [
            (3, BenchmarkPattern("ost", "write", "MPI-IO", "shared", "collective", 64 * KIB, 512 * KIB, 4, 1))
        ],
        "posix-random": [
            (2, BenchmarkPattern("io-node", "write", *shared, "random", 4 * KIB, 64 * KIB, 2, 1))
        ],
    }
    assert [len(of) for of in found.values()] == [4, 2, 6, 2, 1], "repetitions"
    assert {m.origin for of in found.values() for m in of} == {f"ior-{version}"}


@pytest.mark.parametrize("version", VERSIONS)
def test_bandwidths_are_those_of_the_summary(version: str) -> None:
    summaries = {s["operation"]: s for s in output(version)["summary"]}
    found = ior.read(DATA / f"{version}-posix-shared.json")
    for operation, summary in summaries.items():
        rates = [m.bytes_per_s / MIB for m in found if m.pattern.operation == operation]
        assert (min(rates), max(rates)) == (summary["bwMinMIB"], summary["bwMaxMIB"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_file_gives_the_same_ids_and_others_other_ones(version: str) -> None:
    once, again = (ior.read(DATA / f"{version}-posix-unique.json") for _ in range(2))
    assert once == again
    assert len({m.id for m in once}) == len(once)


def test_several_outputs_in_one_file_with_what_a_launcher_said() -> None:
    texts = [(DATA / f"{v}-posix-strided.json").read_text() for v in VERSIONS]
    found = ior.decode(f"srun: job 7 started\n{texts[0]}srun: job {{8}} started\n{texts[1]}", "both")
    assert [m.origin for m in found] == ["ior-3.3.0"] * 2 + ["ior-4.0.0"] * 2


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("posix-random", ior.NOTHING, "or --resources N"),
        ("posix-shared", ior.Told(None, 5), "expected --resources 4, as its directory is called, found 5"),
        ("posix-unique", ior.Told("ost", None), "expected --kind io-node, as its directory is called"),
        ("stonewalled", ior.Told(None, 4), "expected a run that moves all its bytes"),
    ],
)
def test_what_cannot_be_used_is_said(name: str, told: ior.Told, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        ior.read(DATA / f"4.0.0-{name}.json", told)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("tests", 0, "Parameters", "blockSize"), 1 << 59, "blockSize times segmentCount"),
        (("tests", 0, "Options", "tasks"), 10**30, "IOR's JSON output"),
        (("tests", 0, "Parameters", "api"), "DFS", "an API among POSIX, MPIIO, HDF5, NCMPI"),
        (("tests", 0, "Results", 0, "bwMiB"), -1.0, "bwMiB above 0"),
        (("tests", 0, "Results", 0), 7, "IOR's JSON output"),
    ],
)
def test_a_malformed_output_is_one_line(keys: tuple[Any, ...], value: object, said: str) -> None:
    document = output()
    inner: Any = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    with pytest.raises(BadInput, match=said) as caught:
        ior.decode(json.dumps(document), "x")
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_bad_input() -> None:
    with pytest.raises(BadInput):
        ior.decode('{"tests":' + "[" * 100_000, "x")
