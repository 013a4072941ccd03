"""Jobs and the resources that they share, as a TOML file that people write; for `tarazu forward allocate`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from tarazu.errors import BadInput
from tarazu.forwarding import curve_csv, curve_sets
from tarazu.forwarding.application import Application, Kind, Resources
from tarazu.forwarding.curve import Curve, Point, curve
from tarazu.forwarding.families import FAMILIES, FamilyCurve, regressions
from tarazu.units import parse_bytes

MOST = 1_000_000
EXAMPLE = """\
# Jobs that run at the same time, and the I/O resources that they share: `tarazu forward allocate JOBS.toml`.

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
# Nothing measured but the best bandwidth so far: the function of a family (ascent, descent, peak, neutral), as high.
family = "peak"
best_bytes_per_s = 1.2e9

[[job]]
name = "post"
nodes = 1
cpu_s = 100
io_bytes = "2T"
curve = { 1 = 6e8 }     # one point: the same with any number
# curve = "ior"         # or the name of an application in `curves`
"""


class Jobs(msgspec.Struct, frozen=True):
    """What such a file says."""

    resources: Resources
    applications: tuple[Application, ...]
    notes: tuple[str, ...] = ()
    """What whoever shows a result has to say with it."""


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
    top = _Table(raw, str(path), ("resources", "job"))
    given = _Table(top.table("resources"), f"{path}: resources", ("kind", "count", "nodes", "curves"))
    kind = given.one_of("kind", ("io-node", "ost"))
    resources = Resources(
        "ost" if kind == "ost" else "io-node", given.whole("count", 1), given.whole("nodes", 1)
    )
    own = curve_csv.read(path.parent / given.text("curves")) if "curves" in given.raw else None
    curves = _Curves(resources.kind, None if own is None else {c.application: c.curve for c in own.curves})
    listed = raw.get("job")
    if not isinstance(listed, list) or not listed:
        raise BadInput(str(path), "[[job]], once or several times", listed)
    found = tuple(_job(one, f"{path}: job {number}", curves) for number, one in enumerate(listed, 1))
    names = [a.name for a in found]
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            raise BadInput(f"{path}: job {number}: name", "a name that no other job has", name)
    return Jobs(resources, found, curves.notes)


class _Curves:
    """Where the curves of jobs come from that have not their own points."""

    def __init__(self, kind: Kind, own: dict[str, Curve] | None) -> None:
        self._kind, self._own = kind, own
        self._families: Mapping[str, FamilyCurve] = {}
        self.notes: tuple[str, ...] = ()

    def named(self, name: str, where: str) -> Curve:
        if self._own is None:
            raise BadInput(where, "points, or `curves` under [resources] beside a name", name)
        if name not in self._own:
            raise BadInput(where, "an application in `curves`", name)
        return self._own[name]

    def of_family(self, family: str, best: float, where: str) -> Curve:
        if not self._families:
            known = self._own
            if known is None:
                made = curve_sets.generated(self._kind)
                known = {c.application: c.curve for c in made.curves}
                self.notes = (f"the families' functions rest on {made.note}",)
            self._families = {str(f): c for f, c in regressions(known.values()).items()}
        if family not in self._families:
            raise BadInput(where, "a family that occurs in `curves`", family)
        points = self._families[family].curve.points
        return Curve(tuple(Point(p.resources, (p.median * best,)) for p in points), "family")


JOB = ("name", "nodes", "cpu_s", "io_bytes", "phases", "curve", "family", "best_bytes_per_s")


def _job(raw: object, where: str, curves: _Curves) -> Application:
    if not isinstance(raw, dict):
        raise BadInput(where, "a table", raw)
    job = _Table(raw, where, JOB)
    return Application(
        job.text("name"),
        job.whole("nodes", 1),
        _curve(job, curves),
        job.number("cpu_s", 0, 1e12),
        job.bytes("io_bytes"),
        job.whole("phases", 1) if "phases" in raw else 1,
    )


def _curve(job: _Table, curves: _Curves) -> Curve:
    where = f"{job.where}: curve"
    if ("curve" in job.raw) == ("family" in job.raw):
        raise BadInput(job.where, "either `curve` or `family`", "both" if "curve" in job.raw else "none")
    if "family" in job.raw:
        family = job.one_of("family", FAMILIES)
        return curves.of_family(family, job.number("best_bytes_per_s", 1e-3, 1e18), f"{job.where}: family")
    given = job.raw["curve"]
    if isinstance(given, str):
        return curves.named(given, where)
    if not isinstance(given, dict) or not given:
        raise BadInput(where, "bytes a second by number of resources, or a name", given)
    points: list[tuple[int, float]] = []
    for key, values in given.items():
        if not key.isascii() or not key.isdecimal() or not 1 <= int(key[:9]) <= MOST or len(key) > 7:
            raise BadInput(where, f"numbers of resources, 1 to {MOST}", key)
        for value in values if isinstance(values, list) and values else [values]:
            points.append((int(key), _number(value, 1e-3, 1e18, f"{where}: {key}")))
    return curve(points)


class _Table:
    """A table of the file, whose keys are known."""

    def __init__(self, raw: dict[str, Any], where: str, keys: tuple[str, ...]) -> None:
        self.raw, self.where = raw, where
        for key in raw:
            if key not in keys:
                raise BadInput(where, f"keys among {', '.join(keys)}", key)

    def _of(self, key: str) -> Any:
        if key not in self.raw:
            raise BadInput(self.where, f"the key {key}")
        return self.raw[key]

    def table(self, key: str) -> dict[str, Any]:
        found = self._of(key)
        if not isinstance(found, dict):
            raise BadInput(f"{self.where}: {key}", "a table", found)
        return found

    def text(self, key: str) -> str:
        found = self._of(key)
        if not isinstance(found, str) or not found:
            raise BadInput(f"{self.where}: {key}", "a text", found)
        return found

    def one_of(self, key: str, among: tuple[str, ...]) -> str:
        found = self._of(key)
        if found not in among:
            raise BadInput(f"{self.where}: {key}", f"one of {', '.join(among)}", found)
        return str(found)

    def whole(self, key: str, least: int) -> int:
        found = self._of(key)
        if type(found) is not int or not least <= found <= MOST:
            raise BadInput(f"{self.where}: {key}", f"a whole number, {least} to {MOST}", found)
        return found

    def number(self, key: str, least: float, most: float) -> float:
        return _number(self._of(key), least, most, f"{self.where}: {key}")

    def bytes(self, key: str) -> float:
        found = self._of(key)
        if isinstance(found, str):
            try:
                found = parse_bytes(found)
            except ValueError as error:
                raise BadInput(
                    f"{self.where}: {key}", "bytes: a number, or a text such as 900G", str(error)
                ) from None
        return _number(found, 0, 1e24, f"{self.where}: {key}")


def _number(found: object, least: float, most: float, where: str) -> float:
    if type(found) not in (int, float) or not isfinite(found) or not least <= found <= most:  # type: ignore[arg-type, operator]
        raise BadInput(where, f"a number, {least:g} to {most:g}", found)
    return float(found)  # type: ignore[arg-type]
