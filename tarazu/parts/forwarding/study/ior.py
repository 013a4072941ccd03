"""IOR's JSON output (`-O summaryFormat=JSON`, IOR 3.3 and 4.0) → measurements.

How many resources a run had, its directory says, if it is called as `tarazu sim benchmarks plan` calls it,
`tarazu-ost-4` or `tarazu-io-node-4`; or else whoever imports.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.malformed import described
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.estimate.database import (
    LARGEST,
    LEAST_RATE,
    LONGEST_TEXT,
    MOST_RATE,
    MOST_RESOURCES,
    BenchmarkPattern,
    Measurement,
)
from tarazu.trace.phases.phase import Api, Spatiality
from tarazu.units import MIB

MAX_BYTES = 16 << 20
APIS: dict[str, Api] = {"POSIX": "POSIX", "MPIIO": "MPI-IO", "HDF5": "HDF5", "NCMPI": "PNETCDF"}
"""IOR's word → ours."""
NAMES: dict[Kind, str] = {"ost": "OSTs", "io-node": "I/O nodes"}
CONSECUTIVE = 0.8
"""Share of a process's requests that must follow the one before for `contiguous` (paper E, appendix A)."""
_NOISE = re.compile(
    r"^(?:stonewalling pairs|\d+: stonewalling|(?:ior )?WARNING|Pairs deadline).*$", re.MULTILINE
)
_DIRECTORY = re.compile(r"/tarazu-(ost|io-node)-(\d{1,5})/")


def directory(kind: Kind, resources: int) -> str:
    """The name that tells an import how many there were, and of what."""
    return f"tarazu-{kind}-{resources}"


Whole = Annotated[int, Meta(ge=1, lt=LARGEST)]


class _Parameters(msgspec.Struct):
    api: str
    file_name: str = msgspec.field(name="testFileName")
    stonewall: int = msgspec.field(name="deadlineForStonewall")
    dry_run: int = msgspec.field(name="dryRun")
    file_a_process: int = msgspec.field(name="filePerProc")
    random: int = msgspec.field(name="randomOffset")
    collective: int
    segments: Whole = msgspec.field(name="segmentCount")
    transfer_bytes: Whole = msgspec.field(name="transferSize")
    block_bytes: Whole = msgspec.field(name="blockSize")


class _Options(msgspec.Struct):
    nodes: Whole
    tasks: Whole


class _Result(msgspec.Struct):
    access: str
    rate_mib: float | None = msgspec.field(name="bwMiB", default=None)


class _Test(msgspec.Struct):
    number: int = msgspec.field(name="TestID")
    started: str = msgspec.field(name="StartTime")
    parameters: _Parameters = msgspec.field(name="Parameters")
    options: _Options = msgspec.field(name="Options")
    results: list[_Result | list[_Result]] = msgspec.field(name="Results")


class _Output(msgspec.Struct):
    version: str = msgspec.field(name="Version")
    began: str = msgspec.field(name="Began")
    command: str = msgspec.field(name="Command line")
    machine: str = msgspec.field(name="Machine")
    tests: list[_Test]


class Told(NamedTuple):
    """What an import is told of the resources."""

    kind: Kind | None = None
    resources: int | None = None


NOTHING = Told()


def read(path: str | os.PathLike[str], told: Told = NOTHING) -> list[Measurement]:
    """All measurements of one file, which may hold several outputs. Raises BadInput.

    told: what the file does not say. Without a kind it is OSTs.
    """
    where = os.fspath(path)
    try:
        with open(where, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(where, "a readable output of IOR", error.strerror) from None
    if len(raw) > MAX_BYTES:
        raise BadInput(where, f"at most {MAX_BYTES >> 20} MiB of IOR's output", "more")
    return decode(raw.decode("utf-8", "replace"), where, told)


def decode(text: str, where: str, told: Told = NOTHING) -> list[Measurement]:
    """All measurements of outputs that stand in a text, one after another. Raises BadInput."""
    measurements: list[Measurement] = []
    any_found = False
    for document in _documents(text, where):
        any_found = True
        try:
            output = msgspec.convert(document, _Output)
        except msgspec.ValidationError as error:
            raise BadInput(where, "IOR's JSON output (-O summaryFormat=JSON)", str(error)) from None
        for test in output.tests:
            measurements += _measurements(output, test, where, told)
    if not any_found:
        raise BadInput(where, "IOR's JSON output (-O summaryFormat=JSON)", "no JSON")
    return measurements


def _documents(text: str, where: str) -> Iterator[Any]:
    """JSON objects at the beginning of a line; what launchers say before and between them, and IOR within them about a
    deadline, is left alone. Raises BadInput."""
    text = _NOISE.sub("", text)
    decoder, at = json.JSONDecoder(), 0
    while match := re.compile(r"^\{", re.MULTILINE).search(text, at):
        try:
            document, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", match.start())) + 1
            raise BadInput(f"{where}:{line}", "JSON", str(error)) from None
        yield document


def _measurements(output: _Output, test: _Test, where: str, told: Told) -> Iterator[Measurement]:
    place = f"{where}, test {test.number}"
    parameters, options = test.parameters, test.options
    if parameters.dry_run:
        return
    if parameters.stonewall > 0:
        raise BadInput(
            place, "a run that moves all its bytes", f"one stonewalled at {parameters.stonewall} s (-D)"
        )
    if parameters.api not in APIS:
        raise BadInput(place, f"an API among {', '.join(APIS)}", parameters.api)
    kind, resources = _resources(test, place, told)
    process_bytes = parameters.block_bytes * parameters.segments
    if process_bytes >= LARGEST:
        raise BadInput(place, f"blockSize times segmentCount below {LARGEST}", process_bytes)
    unique = parameters.file_a_process or options.tasks == 1
    seen: Counter[str] = Counter()
    # 3.3 keeps a list for each repetition, 4.0 one for all.
    for row in chain.from_iterable(r if isinstance(r, list) else [r] for r in test.results):
        access, rate = row.access, row.rate_mib
        if access not in ("read", "write"):
            continue  # "remove"
        if rate is None or not LEAST_RATE <= rate * MIB <= MOST_RATE:
            raise BadInput(f"{place}, {access}", "bwMiB above 0", rate)
        seen[access] += 1
        pattern = BenchmarkPattern(
            kind=kind,
            operation="read" if access == "read" else "write",
            api=APIS[parameters.api],
            sharing="unique" if unique else "shared",
            spatiality=_spatiality(parameters, bool(unique)),
            request_bytes=parameters.transfer_bytes,
            process_bytes=process_bytes,
            processes=options.tasks,
            nodes=options.nodes,
        )
        key = (output.version, output.began, output.machine, output.command, test.number, test.started)
        digest = hashlib.sha256(repr((*key, access, seen[access], rate)).encode()).hexdigest()[:20]
        yield Measurement(
            pattern,
            resources,
            rate * MIB,
            _one_line(f"ior-{output.version}"),
            _one_line(test.started or output.began),
            digest,
        )


def _resources(test: _Test, place: str, told: Told) -> tuple[Kind, int]:
    named = _DIRECTORY.search(test.parameters.file_name)
    if named:
        kind = next(k for k in get_args(Kind) if k == named[1])
        number = int(named[2])
        if told.kind not in (None, kind):
            raise BadInput(place, f"--kind {kind}, as its directory is called", told.kind)
        if told.resources not in (None, number):
            raise BadInput(place, f"--resources {number}, as its directory is called", told.resources)
    else:
        kind = told.kind or "ost"
        if told.resources is None:
            raise BadInput(
                place, f"a directory of `sim benchmarks plan`, or --resources N ({NAMES[kind]})", "neither"
            )
        number = told.resources
    if not 1 <= number <= MOST_RESOURCES:
        raise BadInput(place, f"1 to {MOST_RESOURCES} resources", number)
    return kind, number


def _spatiality(parameters: _Parameters, unique: bool) -> Spatiality:
    """As a Darshan log of the run would be classified."""
    if parameters.collective and not unique:
        return "collective"
    if parameters.random:
        return "random"
    a_block = max(1, parameters.block_bytes // parameters.transfer_bytes)
    breaks = parameters.segments - 1
    requests = a_block * parameters.segments
    if unique or not breaks or 1 - breaks / requests >= CONSECUTIVE:
        return "contiguous"
    return "sequential"


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:LONGEST_TEXT]


described(_Output)
