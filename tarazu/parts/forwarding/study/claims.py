"""What paper A claims, beside what these rows say: each claim with a number that decides whether it holds here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study.summary import (
    METRICS,
    ForwardingSummary,
    Metric,
    idletime,
    rho_con,
    slowdown,
    spread,
)
from tarazu.parts.forwarding.tables import Array

LOW, HIGH = 0.2, 0.7
"""Loads up to here are low, from here on high."""
ALIKE = 0.05
"""Means that differ by less than this part are about the same: GC ≈ GNC."""
INFORMED_ALLOCATORS = ("static", "bba", "nsysa", "ta")
ALLOCATIONS = tuple(f"{allocator}-gnc" for allocator in INFORMED_ALLOCATORS)


class Claim(msgspec.Struct, frozen=True):
    kind: Kind
    figure: str
    """The paper's, where it can be seen."""
    paper: str
    """What it says."""
    seen: str
    """What is seen here."""
    holds: bool


def claims(of: ForwardingSummary) -> list[Claim]:
    """Each claim for each kind of resources that the rows have."""
    all_claims = [
        Claim(kind, str(figures[kind == "ost"]), *claim(of, kind))
        for kind in of.kinds
        for figures, claim in CLAIMS
    ]
    if len(of.kinds) == 2:
        all_claims += [Claim("ost", "13", *_near(of)), Claim("ost", "12", *_sooner(of))]
    return all_claims


Seen = tuple[str, str, bool]
"""What the paper says; what is seen here; whether it holds."""


def _over(of: ForwardingSummary, kind: Kind, a: str, b: str, metric: Metric = slowdown) -> Array:
    """Mean of a over mean of b, less 1, at each level."""
    return of.means(kind, a, metric) / of.means(kind, b, metric) - 1


def _range(values: Array | Sequence[float]) -> str:
    return f"{100 * min(values):+.1f} to {100 * max(values):+.1f} %"


def _high(of: ForwardingSummary) -> slice:
    """Which levels are high; at least the last."""
    return slice(min(sum(level < HIGH for level in of.levels), len(of.levels) - 1), None)


def _alike(of: ForwardingSummary, kind: Kind) -> Seen:
    differences = {a: _over(of, kind, f"{a}-gnc", f"{a}-gc") for a in INFORMED_ALLOCATORS}
    return (
        "GNC gives about the Mean-I/O-SlowDown of GC (but with Random)",
        "; ".join(f"{a} {100 * d.mean():+.1f} % ({_range(d)})" for a, d in differences.items()),
        all(abs(d.mean()) <= ALIKE for d in differences.values()),
    )


def _random(of: ForwardingSummary, kind: Kind) -> Seen:
    differences = {a: _over(of, kind, f"{a}-randp", f"{a}-gc") for a in INFORMED_ALLOCATORS}
    worse = np.array(list(differences.values()))
    gnc = np.abs([_over(of, kind, f"{a}-gnc", f"{a}-gc") for a in INFORMED_ALLOCATORS])
    return (
        "RandP is much worse",
        "; ".join(f"{a} {_range(values)}" for a, values in differences.items()),
        bool(worse.min() > 0 and worse.mean() > 3 * gnc.mean()),
    )


def _spread(of: ForwardingSummary, kind: Kind) -> Seen:
    means = {placer: of.means(kind, f"bba-{placer}", spread) for placer in ("gc", "gnc", "randp")}
    return (
        "GC balances the resources better than GNC, GNC better than RandP, at every load",
        "; ".join(f"{placer} {at.min():.2f} to {at.max():.2f}" for placer, at in means.items()),
        bool((means["gc"] < means["gnc"]).all() and (means["gnc"] < means["randp"]).all()),
    )


def _low(of: ForwardingSummary, kind: Kind) -> Seen:
    count = max(1, sum(level <= LOW for level in of.levels))
    policies = (*ALLOCATIONS, "mckp")
    means = np.array([of.means(kind, policy, slowdown)[:count] for policy in policies])
    best = {policies[at] for at in means.argmin(axis=0).tolist()}
    over = means[policies.index("bba-gnc")] / means.min(axis=0) - 1
    return (
        "BBA is best for users at low load",
        f"up to {LOW:g}: {_range(over)} beside the best ({', '.join(sorted(best))})",
        bool(over.max() <= 0.01),
    )


def _users(of: ForwardingSummary, kind: Kind) -> Seen:
    differences = _over(of, kind, "ta-gnc", "bba-gnc")[_high(of)]
    return (
        "TA is as good for users as BBA at high load",
        f"from {HIGH:g}: {_range(differences)} beside BBA",
        bool(differences.max() <= 0.01),
    )


def _machine(of: ForwardingSummary, kind: Kind) -> Seen:
    differences = _over(of, kind, "ta-gnc", "bba-gnc", idletime)[_high(of)]
    return (
        "and better for the machine",
        f"Machine-Idletime from {HIGH:g}: {_range(differences)} beside BBA",
        bool(differences.max() < 0),
    )


def _line(of: ForwardingSummary, kind: Kind, policy: str) -> tuple[float, float]:
    """Slope of ρ^con over the load, and how much of it a straight line explains (R²)."""
    if len(of.levels) < 2:
        return 0.0, 0.0
    congestion = of.means(kind, policy, rho_con)
    slope, _ = np.polyfit(of.levels, congestion, 1)
    return float(slope), float(np.corrcoef(of.levels, congestion)[0, 1] ** 2)


def _linear(of: ForwardingSummary, kind: Kind) -> Seen:
    slope, explained = _line(of, kind, "bba-gnc")
    return (
        "ρ^con of BBA grows linearly with the load",
        f"{slope:+.2f} a unit of load, R² {explained:.3f}",
        slope > 0 and explained >= 0.95,
    )


def _flat(policy: str, of: ForwardingSummary, kind: Kind) -> Seen:
    slope, _ = _line(of, kind, policy)
    bba, _ = _line(of, kind, "bba-gnc")
    congestion = of.means(kind, policy, rho_con)
    name = policy.removesuffix("-gnc").upper()
    return (
        f"ρ^con of {name} varies much less",
        f"{slope:+.2f} a unit of load ({slope / bba:.0%} of BBA's), {congestion.min():.2f} to {congestion.max():.2f}",
        abs(slope) <= bba / 4,
    )


def _knapsack(of: ForwardingSummary, kind: Kind) -> Seen:
    others = {policy: of.means(kind, policy, slowdown) for policy in of.papers if policy != "mckp"}
    mckp = of.means(kind, "mckp", slowdown)
    at = len(of.levels) // 2
    worst = max(others, key=lambda policy: others[policy][at])
    return (
        "MCKP is the worst for users",
        f"at {of.levels[at]:g}: {mckp[at]:.1f}, the next ({worst}) {others[worst][at]:.1f}",
        all((mckp > other).all() for other in others.values()),
    )


def _families(of: ForwardingSummary, kind: Kind) -> Seen:
    ratios = of.ratios(kind, ("ta-gnc", "profile"), ("ta-gnc", "truth"), slowdown)
    costs = np.array([np.mean(values) for values in ratios.values()]) - 1
    return (
        "to know families alone costs TA less than 1 % of Mean-I/O-SlowDown",
        f"{100 * costs.mean():+.2f} % ({_range(costs)})",
        bool(costs.max() < 0.01),
    )


def _families_machine(of: ForwardingSummary, kind: Kind) -> Seen:
    ta, *bba = (of.means(kind, policy, idletime, "profile") for policy in ("ta-gnc", "bba-gnc", "bba-gc"))
    over = ta / np.minimum(*bba) - 1
    return (
        "and leaves TA the best for the machine, beside BBA",
        f"Machine-Idletime {_range(over)} beside BBA's",
        bool(over.max() <= 0.01),
    )


def _static(of: ForwardingSummary, kind: Kind) -> Seen:
    """Excellent is: within 5 % of the best of the others, at medium and high load."""
    first = sum(level <= LOW for level in of.levels) % len(of.levels)
    over = {}
    for name, metric in METRICS.items():
        static, *others = (of.means(kind, policy, metric)[first:] for policy in ALLOCATIONS)
        over[name] = static / np.min(others, axis=0) - 1
    excellent = all(values.max() <= ALIKE for values in over.values())
    wanted = kind == "ost"
    return (
        f"Static is {'excellent' if wanted else 'not among the best'} with {'OSTs' if wanted else 'I/O nodes'}",
        "; ".join(f"{name} {_range(values)} beside the best other" for name, values in over.items()),
        excellent == wanted,
    )


CLAIMS: tuple[tuple[tuple[int, int], Callable[[ForwardingSummary, Kind], Seen]], ...] = (
    ((5, 14), _alike),
    ((5, 14), _random),
    ((7, 16), _spread),
    ((8, 17), _low),
    ((8, 17), _users),
    ((9, 18), _machine),
    ((8, 17), _linear),
    ((8, 17), partial(_flat, "nsysa-gnc")),
    ((8, 17), partial(_flat, "ta-gnc")),
    ((8, 17), _knapsack),
    ((11, 11), _families),
    ((11, 11), _families_machine),
    ((8, 12), _static),
)
"""The paper's figures for I/O nodes and for OSTs, where it can be seen, and what says whether it is."""


def _near(of: ForwardingSummary) -> Seen:
    more = {
        a: 100 * (of.means("ost", f"{a}-gnc", slowdown) / of.means("io-node", f"{a}-gnc", slowdown) - 1)
        for a in INFORMED_ALLOCATORS
    }
    return (
        "OSTs and I/O nodes differ by less than 5 %",
        "; ".join(f"{a} {values.min():+.0f} to {values.max():+.0f} %" for a, values in more.items()),
        all((abs(values) < 5).all() for values in more.values()),
    )


def crossing(of: ForwardingSummary, kind: Kind) -> float:
    """The load from which NSYSA is better for users than BBA, between levels by a straight line; inf: never."""
    over = of.means(kind, "bba-gnc", slowdown) - of.means(kind, "nsysa-gnc", slowdown)
    gaps: list[float] = over.tolist()
    for (x, gap), (x2, gap2) in pairwise(zip(of.levels, gaps)):
        if gap <= 0 < gap2:
            return x + (x2 - x) * -gap / (gap2 - gap)
    return of.levels[0] if gaps[0] > 0 else float("inf")


def _sooner(of: ForwardingSummary) -> Seen:
    at = {kind: crossing(of, kind) for kind in of.kinds}
    return (
        "BBA loses to policies that know the load sooner with OSTs",
        f"NSYSA is better for users from {at['ost']:.2f} on, with I/O nodes from {at['io-node']:.2f}",
        at["ost"] < at["io-node"],
    )
