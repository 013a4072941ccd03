"""The cases of the study: some sets of applications at one level of load, and what they give under each policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.application import Application, Kind, Schedule, Scheduler
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.study import curve_sets, families, schedulers
from tarazu.parts.forwarding.study.families import Family
from tarazu.parts.forwarding.study.metrics import Measures, best_io_s, measure
from tarazu.parts.forwarding.study.workload import (
    LEVELS,
    SETS,
    Set,
    least_load,
    resources,
    sets_at,
)
from tarazu.sim.study.case import Case, digest, fingerprint

OURS = "joint"
MODEL = ("parts/forwarding", "reading.py", "sim/kernel/servers.py")
"""What computes a row."""
KINDS: tuple[Kind, ...] = ("io-node", "ost")
IN_A_CASE = 10
"""Sets of one case."""
MOST_APART = 1000.0
"""Bandwidths of one application, as medians: a set is simulated until the slowest has done a phase (the 189: 43)."""
PROFILE = (*(f"{a}-{p}" for a in ("bba", "nsysa", "ta") for p in ("gnc", "gc")), "static-gc", OURS)
"""Policies that are also asked with what is known of an application's family alone: those of figure 11, and what else
may be the best then and needs curves."""

Curves = Path | Literal["generated"] | None
"""Of a study: a CSV; generated ones; None: measured ones over I/O nodes, generated ones over OSTs."""
Told = Literal["truth", "profile"]
"""What a policy is told of an application: its curve, or its family's (paper A, section 6.2)."""


Known = Callable[[Set], Sequence[Application]]
"""What a scheduler is told of the applications of a set; without it the truth."""


def evaluate(
    schedulers: Sequence[Scheduler], sets: Sequence[Set], kind: Kind, known: Known | None = None
) -> dict[str, list[Measures]]:
    """For each scheduler, by name, the measures of each set."""
    among = resources(kind)
    by_scheduler: dict[str, list[Measures]] = {scheduler.name: [] for scheduler in schedulers}
    for one in sets:
        best_s = best_io_s(one.applications, among)
        told = one.applications if known is None else known(one)
        measured: dict[Schedule, Measures] = {}  # at low load TA is BBA
        for scheduler in schedulers:
            schedule = scheduler.schedule(told, among)
            if schedule not in measured:
                measured[schedule] = measure(one.applications, schedule, among, best_s=best_s)
            by_scheduler[scheduler.name].append(measured[schedule])
    return by_scheduler


class ForwardingRow(msgspec.Struct, frozen=True):
    """One set of applications under one policy. The same seed gives the same row, bit for bit."""

    case: Annotated[str, Meta(description="id of the case: hash of all that its result depends on")]
    run: Annotated[int, Meta(description="which row of the case, from 1")]
    runs: Annotated[int, Meta(description="rows of this case")]
    kind: Annotated[Kind, Meta(description="what the resources are, and so which curves")]
    level: Annotated[float, Meta(description="I/O-load(π_sys), to 0.05")]
    block: Annotated[int, Meta(description="with `seed`: which set")]
    seed: Annotated[int, Meta(description="with `block`: which set")]
    load: Annotated[float, Meta(description="I/O-load(π_sys) of this set")]
    told: Annotated[Told, Meta(description="what the policy knows of the applications' curves")]
    policy: Annotated[str, Meta(description="the policy")]
    mean_slowdown: Annotated[float, Meta(description="Mean-I/O-SlowDown")]
    rho_io: Annotated[float, Meta(description="its part by the number of resources")]
    rho_con: Annotated[float, Meta(description="its part by congestion")]
    spread: Annotated[float, Meta(description="I/O-spread")]
    idletime: Annotated[float, Meta(description="Machine-Idletime")]
    interval_s: Annotated[float, Meta(description="seconds that were measured")]


class ForwardingCase(Case, frozen=True):
    """Some sets at one level under all policies."""

    kind: Kind
    level: float
    block: int
    sets: int
    policies: tuple[str, ...]
    curves: str
    """A CSV file, `generated`, or empty for what studies use otherwise."""
    digest: str
    """Of the file's content, or of that of the measured curves; of generated ones empty."""
    model: str

    @property
    def id(self) -> str:
        return digest(msgspec.structs.astuple(msgspec.structs.replace(self, curves="")))

    @property
    def label(self) -> str:
        first = self.block * IN_A_CASE
        return f"{self.kind} load {self.level:g} sets {first} to {first + self.sets - 1}"

    @property
    def weight(self) -> float:
        return float(self.sets)


def cases(
    curves: Curves = None,
    kinds: Sequence[Kind] = KINDS,
    levels: Sequence[float] = LEVELS,
    sets: int = SETS,
) -> tuple[ForwardingCase, ...]:
    """Every case of a study. Raises BadInput."""
    if isinstance(curves, Path):
        _check(curves)
    path = str(curves.absolute()) if isinstance(curves, Path) else curves or ""
    digests = {kind: _digest(curves, kind) for kind in kinds}
    return tuple(
        ForwardingCase(
            kind,
            level,
            first // IN_A_CASE,
            min(IN_A_CASE, sets - first),
            schedulers.NAMES,
            path,
            digests[kind],
            fingerprint(MODEL),
        )
        for kind in kinds
        for level in levels
        for first in range(0, sets, IN_A_CASE)
    )


def _check(path: Path) -> None:
    for application, curve in curve_csv.read(path).items():
        medians = [point.median for point in curve.points]
        if max(medians) > MOST_APART * min(medians):
            raise BadInput(
                f"{path}: {application}",
                f"bandwidths of which the highest is {MOST_APART:,.0f} times the least at most, all in bytes a second",
                f"{min(medians):g} and {max(medians):g}",
            )


def _digest(curves: Curves, kind: Kind) -> str:
    if isinstance(curves, Path):
        return hashlib.sha256(curves.read_bytes()).hexdigest()
    if curves == "generated" or kind != "io-node":
        return ""
    return hashlib.sha256(curve_sets.published_text().encode()).hexdigest()


@cache
def _known(kind: Kind, path: str, digest: str) -> tuple[tuple[Curve, ...], dict[Family, Curve]]:
    """Curves, and the function of each family of them."""
    if path == "generated":
        curves = curve_sets.generated(kind)
    else:
        curves = tuple(curve_csv.read(Path(path)).values()) if path else curve_sets.standard(kind)
    return curves, families.regressions(curves)


def rows(
    case: ForwardingCase, progress: Callable[[float, float], object] | None = None
) -> list[ForwardingRow]:
    """A row for each set and policy, and for each policy of `PROFILE` one more."""
    curves, functions = _known(case.kind, case.curves, case.digest)

    def profile(one: Set) -> list[Application]:
        return [families.profile_level(application, functions) for application in one.applications]

    asked: tuple[tuple[Told, Sequence[str], Known | None], ...] = (
        ("truth", case.policies, None),
        ("profile", [name for name in PROFILE if name in case.policies], profile),
    )
    sets = sets_at(case.level, curves, case.kind, case.sets, case.block)
    runs = sum(len(names) for _, names, _ in asked) * len(sets)
    case_rows: list[ForwardingRow] = []
    for done, one in enumerate(sets):
        about = (case.kind, case.level, case.block, one.seed, least_load(one, case.kind))
        for told, names, known in asked:
            several = [schedulers.named(name, one.seed) for name in names]
            for name, (of,) in evaluate(several, [one], case.kind, known).items():
                seen = (of.mean_slowdown, of.rho_io, of.rho_con, of.spread, of.idletime, of.interval_s)
                case_rows.append(ForwardingRow(case.id, len(case_rows) + 1, runs, *about, told, name, *seen))
        if progress is not None:
            progress(0.0, (done + 1) / len(sets))
    return case_rows


def note(curves: Curves, kinds: Sequence[Kind]) -> str:
    """What the curves are, for whoever looks at figures that rest on them."""
    if isinstance(curves, Path):
        return f"curves of {curves}"
    if curves == "generated":
        return curve_sets.GENERATED
    notes = {"io-node": curve_sets.PUBLISHED, "ost": f"over OSTs {curve_sets.GENERATED}"}
    return "; ".join(notes[kind] for kind in kinds)
