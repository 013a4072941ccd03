"""Jobs and the resources that they share, as a TOML file that people write; for `tarazu sim forward allocate`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.application import Application, Kind, Resources
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.table import convert, placed
from tarazu.units import parse_bytes

EXAMPLE = """\
# Jobs that run at the same time, and the I/O resources that they share: `tarazu sim forward allocate JOBS.toml`.

[resources]
kind = "io-node"        # io-node (LNet routers) or ost
count = 8               # how many of them
nodes = 480             # compute nodes of the whole machine
# curves = "curves.csv" # a site's own: application,resources,bytes_per_s, a row for each repetition

[[job]]
name = "climate"
nodes = 256             # compute nodes of this job
cpu_s = 3000            # seconds in which it computes, in all
io_bytes = "8T"         # bytes that it reads and writes, in all
phases = 20             # how many times it computes and then does I/O (default: 1)
# Bandwidth in bytes a second with so many resources; a list: what was measured in several runs.
curve = { 1 = 1.0e9, 2 = [1.8e9, 1.9e9, 1.7e9], 4 = 3.1e9, 8 = 4.4e9 }

[[job]]
name = "genome"
nodes = 32
cpu_s = 4000
io_bytes = "900G"
phases = 5
curve = { 1 = 4e8, 4 = 1.2e9, 8 = 0.9e9 }

[[job]]
name = "post"
nodes = 1
cpu_s = 100
io_bytes = "2T"
curve = { 1 = 6e8 }     # one point: the same with any number
# curve = "ior"         # or the name of an application in `curves`
"""


Text = Annotated[str, Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=1, le=1_000_000)]
Rate = Annotated[float, Meta(ge=1e-3, le=1e18)]
Size = Annotated[float, Meta(ge=0, le=1e24)]
Count = Annotated[
    str, Meta(pattern=r"^([1-9][0-9]{0,5}|1000000)\Z", title="numbers of resources, 1 to 1000000")
]


class _Resources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Kind
    count: Whole
    nodes: Whole
    curves: str = ""


class _Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    nodes: Whole
    cpu_s: Annotated[float, Meta(ge=0, le=1e12)]
    io_bytes: Annotated[Size | str, Meta(title="bytes: a number, or a text such as 900G")]
    curve: Annotated[
        Text | Annotated[dict[Count, Rate | Annotated[list[Rate], Meta(min_length=1)]], Meta(min_length=1)],
        Meta(title="bytes a second by number of resources, or a name"),
    ]
    phases: Whole = 1


class _JobsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resources: _Resources
    job: Annotated[list[_Job], Meta(min_length=1, title="[[job]], once or several times")]


class Jobs(msgspec.Struct, frozen=True):
    """What such a file says."""

    resources: Resources
    applications: tuple[Application, ...]


def read(path: Path) -> Jobs:
    """Raises BadInput with the file and the place in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(str(path), "a TOML file of jobs (--example prints one)", error.strerror) from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "a TOML file of jobs in UTF-8", "other bytes") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Jobs:
    """As `read`, of text; what it names is looked for beside `path`."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits
        raise BadInput(str(path), "TOML", str(error).splitlines()[0] if str(error) else "too deep") from None
    file = convert(raw, _JobsFile, str(path))
    of = file.resources
    curves = curve_csv.read(path.parent / of.curves) if of.curves else {}
    applications: dict[str, Application] = {}
    for number, job in enumerate(file.job):
        where = placed(str(path), ("job", number))
        if job.name in applications:
            raise BadInput(f"{where}.name", "a name that no other job has", job.name)
        size, shape = _bytes(job.io_bytes, f"{where}.io_bytes"), _curve(job, curves, f"{where}.curve")
        applications[job.name] = Application(job.name, job.nodes, shape, job.cpu_s, size, job.phases)
    return Jobs(Resources(of.kind, of.count, of.nodes), tuple(applications.values()))


def _bytes(size: float | str, where: str) -> float:
    if not isinstance(size, str):
        return size
    try:
        return convert(parse_bytes(size), Size, where)
    except ValueError as error:
        raise BadInput(where, "bytes: a number, or a text such as 900G", str(error)) from None


def _curve(job: _Job, named: Mapping[str, Curve], where: str) -> Curve:
    """Its own points, or the one of that name."""
    if isinstance(job.curve, str):
        if job.curve not in named:
            raise BadInput(where, "points, or an application in `curves` of [resources]", job.curve)
        return named[job.curve]
    return curve(
        (int(count), value)
        for count, values in job.curve.items()
        for value in (values if isinstance(values, list) else [values])
    )
