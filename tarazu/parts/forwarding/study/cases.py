"""The cases of the study: some sets of applications at one level of load, and what they give under each policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.application import Application, Kind
from tarazu.parts.forwarding.curve import Curve
from tarazu.parts.forwarding.policy import Schedule, Scheduler
from tarazu.parts.forwarding.study import curve_sets, families, policies, published
from tarazu.parts.forwarding.study.families import Family, FamilyCurve
from tarazu.parts.forwarding.study.levels import LEVELS, SETS, least_load, sets_at
from tarazu.parts.forwarding.study.metrics import Measures, best_io_s, measure
from tarazu.parts.forwarding.study.workload import RESOURCES, Set, resources
from tarazu.sim.study.case import Case, digest, fingerprint

OURS = "joint"
MODEL = (
    *(
        f"parts/forwarding/{name}.py"
        for name in ("application", "curve", "curve_csv", "policy", "tables", "tcpu")
    ),
    "reading.py",
    "sim/kernel/servers.py",
    "parts/forwarding/study/policies",
    *(
        f"parts/forwarding/study/{name}.py"
        for name in (
            *("cases", "characteristics", "curve_sets", "families"),
            *("levels", "metrics", "published", "simulate", "workload"),
        )
    ),
)
"""What computes a row of the paper's policies."""
OUR_MODEL = (*MODEL, "parts/forwarding/joint")
"""And of ours, which is computed apart: whoever changes it need not compute the others anew."""
KINDS: tuple[Kind, ...] = ("io-node", "ost")
IN_A_CASE = 10
"""Sets of one case."""
MOST_APART = 1000.0
"""Bandwidths of one application, as medians: a set is simulated until the slowest has done a phase (the 189: 43)."""
OUR_WEIGHT = 25
"""Time of our policy, in that of one of the others with its simulation."""
PROFILE = (*(f"{a}-{p}" for a in ("bba", "nsysa", "ta") for p in ("gnc", "gc")), "static-gc", OURS)
"""Policies that are also asked with what is known of an application's family alone: those of figure 11, and what else
may be the best then and needs curves."""

Curves = Path | Literal["generated"] | None
"""Of a study: a CSV; generated ones; None: measured ones over I/O nodes, generated ones over OSTs."""
Told = Literal["truth", "profile"]
"""What a policy is told of an application: its curve, or its family's (paper A, section 6.2)."""


Known = Callable[[Set], Sequence[Application]]
"""What a scheduler is told of the applications of a set; without it the truth."""


class Means(msgspec.Struct, frozen=True):
    """Over sets."""

    mean_slowdown: float
    rho_io: float
    rho_con: float
    spread: float
    idletime: float


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


def means(measures: Sequence[Measures]) -> Means:
    return Means(*(fmean(getattr(of_set, field) for of_set in measures) for field in Means.__struct_fields__))


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
        content = msgspec.structs.astuple(
            msgspec.structs.replace(self, curves="", model=_model(self.policies))
        )
        return digest(content)

    @property
    def label(self) -> str:
        first = self.block * IN_A_CASE
        who = ", ".join(self.policies) if len(self.policies) < 3 else f"{len(self.policies)} policies"
        return f"{self.kind} load {self.level:g} sets {first} to {first + self.sets - 1}, {who}"

    @property
    def weight(self) -> float:
        return float(
            self.sets * len(self.policies) + (OUR_WEIGHT * self.sets if OURS in self.policies else 0)
        )


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
            names,
            path,
            digests[kind],
            _model(names),
        )
        for names in (tuple(name for name in policies.NAMES if name != OURS), (OURS,))
        for kind in kinds
        for level in levels
        for first in range(0, sets, IN_A_CASE)
    )


def _check(path: Path) -> None:
    for named in curve_csv.read(path).curves:
        medians = [point.median for point in named.curve.points]
        if max(medians) > MOST_APART * min(medians):
            raise BadInput(
                f"{path}: {named.application}",
                f"bandwidths of which the highest is {MOST_APART:,.0f} times the least at most, all in bytes a second",
                f"{min(medians):g} and {max(medians):g}",
            )


def _digest(curves: Curves, kind: Kind) -> str:
    if isinstance(curves, Path):
        return hashlib.sha256(curves.read_bytes()).hexdigest()
    if curves == "generated" or kind != "io-node":
        return ""
    return hashlib.sha256(published.text().encode()).hexdigest()


def _model(names: Sequence[str]) -> str:
    return fingerprint(OUR_MODEL if OURS in names else MODEL)


class _Known(msgspec.Struct, frozen=True):
    """Curves, and the function of each family of them."""

    curves: tuple[Curve, ...]
    families: dict[Family, FamilyCurve]


@cache
def _known(kind: Kind, path: str, digest: str) -> _Known:
    if path == "generated":
        curve_set = curve_sets.generated(kind)
    else:
        curve_set = curve_csv.read(Path(path)) if path else curve_sets.standard(kind)
    curves = tuple(named.curve for named in curve_set.curves)
    return _Known(curves, families.regressions(curves))


def rows(
    case: ForwardingCase, progress: Callable[[float, float], object] | None = None
) -> list[ForwardingRow]:
    """A row for each set and policy, and for each policy of `PROFILE` one more."""
    known = _known(case.kind, case.curves, case.digest)

    def profile(one: Set) -> list[Application]:
        return [families.profile_level(application, known.families) for application in one.applications]

    case_rows: list[ForwardingRow] = []
    asked: tuple[tuple[Told, Sequence[str]], ...] = (
        ("truth", case.policies),
        ("profile", [name for name in PROFILE if name in case.policies]),
    )
    sets = sets_at(case.level, known.curves, case.kind, case.sets, case.block)
    runs = sum(len(names) for _, names in asked) * len(sets)
    for done, one in enumerate(sets):
        load = least_load(one, case.kind)
        for told, names in asked:
            schedulers = [policies.named(name, one.seed) for name in names]
            measured = evaluate(schedulers, [one], case.kind, profile if told == "profile" else None)
            for name, (measures,) in measured.items():
                case_rows.append(
                    ForwardingRow(
                        case=case.id,
                        run=len(case_rows) + 1,
                        runs=runs,
                        kind=case.kind,
                        level=case.level,
                        block=case.block,
                        seed=one.seed,
                        load=load,
                        told=told,
                        policy=name,
                        mean_slowdown=measures.mean_slowdown,
                        rho_io=measures.rho_io,
                        rho_con=measures.rho_con,
                        spread=measures.spread,
                        idletime=measures.idletime,
                        interval_s=measures.interval_s,
                    )
                )
        if progress is not None:
            progress(0.0, (done + 1) / len(sets))
    return case_rows


def note(curves: Curves, kinds: Sequence[Kind]) -> str:
    """What the curves are, for whoever looks at figures that rest on them."""
    if isinstance(curves, Path):
        of = [named.curve.points for named in curve_csv.read(curves).curves]
        above = sum(points[0].resources > 1 for points in of)
        beyond = sum(points[-1].resources > RESOURCES for points in of)
        text = f"curves of {curves}"
        if above:
            text += f"; {above} of {len(of)} without a value for 1: taken to be that for their least number"
        if beyond:
            text += f"; {beyond} with numbers above {RESOURCES}, which is all that there are"
        return text
    if curves == "generated":
        return curve_sets.GENERATED
    notes = {"io-node": published.NOTE, "ost": f"over OSTs {curve_sets.GENERATED}"}
    return "; ".join(notes[kind] for kind in kinds)
