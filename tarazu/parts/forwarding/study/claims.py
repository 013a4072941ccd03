"""What paper A claims, beside what these rows say: each claim with a number that decides whether it holds here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study.figures import difference
from tarazu.parts.forwarding.study.summary import (
    ForwardingSummary,
    Metric,
    idletime,
    rho_con,
    slowdown,
    spread,
)

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


NOT_HERE: dict[Kind, frozenset[str]] = {
    "io-node": frozenset(
        {
            "TA is as good for users as BBA at high load",
            "ρ^con of NSYSA varies much less",
            "ρ^con of TA varies much less",
            "to know families alone costs TA less than 1 % of Mean-I/O-SlowDown",
        }
    ),
    "ost": frozenset(
        {
            "to know families alone costs TA less than 1 % of Mean-I/O-SlowDown",
            "and leaves TA the best for the machine, beside BBA",
            "Static is excellent with OSTs",
            "OSTs and I/O nodes differ by less than 5 %",
        }
    ),
}
"""What docs/forwarding.md says does not hold for measured curves over I/O nodes and generated ones over OSTs, with the
reasons; all else does."""


def claims(of: ForwardingSummary) -> list[Claim]:
    """Each claim for each kind of resources that the rows have."""
    all_claims: list[Claim] = []
    for kind in of.kinds:
        all_claims += [
            _alike(of, kind),
            _random(of, kind),
            _spread(of, kind),
            _low(of, kind),
            _users(of, kind),
            _machine(of, kind),
            _linear(of, kind),
            _flat(of, kind, "nsysa-gnc"),
            _flat(of, kind, "ta-gnc"),
            _knapsack(of, kind),
            _families(of, kind),
            _families_machine(of, kind),
            _static(of, kind),
        ]
    if len(of.kinds) == 2:
        all_claims += [_near(of), _sooner(of)]
    return all_claims


def _figure(kind: Kind, io_node: int, ost: int) -> str:
    return str(io_node if kind == "io-node" else ost)


def _over(
    of: ForwardingSummary, kind: Kind, a: str, b: str, metric: Metric, levels: Sequence[float]
) -> list[float]:
    """Mean of a over mean of b, less 1, at each level."""
    return [of.mean(kind, a, metric, level) / of.mean(kind, b, metric, level) - 1 for level in levels]


def _range(values: Sequence[float]) -> str:
    return f"{100 * min(values):+.1f} to {100 * max(values):+.1f} %"


def _low_levels(of: ForwardingSummary) -> list[float]:
    return [level for level in of.levels if level <= LOW] or of.levels[:1]


def _high_levels(of: ForwardingSummary) -> list[float]:
    return [level for level in of.levels if level >= HIGH] or of.levels[-1:]


def _alike(of: ForwardingSummary, kind: Kind) -> Claim:
    differences = {
        a: _over(of, kind, f"{a}-gnc", f"{a}-gc", slowdown, of.levels) for a in INFORMED_ALLOCATORS
    }
    means = {a: float(np.mean(values)) for a, values in differences.items()}
    return Claim(
        kind,
        _figure(kind, 5, 14),
        "GNC gives about the Mean-I/O-SlowDown of GC (but with Random)",
        "; ".join(f"{a} {100 * means[a]:+.1f} % ({_range(differences[a])})" for a in means),
        all(abs(value) <= ALIKE for value in means.values()),
    )


def _random(of: ForwardingSummary, kind: Kind) -> Claim:
    differences = {
        a: _over(of, kind, f"{a}-randp", f"{a}-gc", slowdown, of.levels) for a in INFORMED_ALLOCATORS
    }
    gnc = [abs(x) for a in differences for x in _over(of, kind, f"{a}-gnc", f"{a}-gc", slowdown, of.levels)]
    return Claim(
        kind,
        _figure(kind, 5, 14),
        "RandP is much worse",
        "; ".join(f"{a} {_range(values)}" for a, values in differences.items()),
        min(min(values) for values in differences.values()) > 0
        and float(np.mean(list(differences.values()))) > 3 * float(np.mean(gnc)),
    )


def _spread(of: ForwardingSummary, kind: Kind) -> Claim:
    means = {
        placer: [of.mean(kind, f"bba-{placer}", spread, level) for level in of.levels]
        for placer in ("gc", "gnc", "randp")
    }
    return Claim(
        kind,
        _figure(kind, 7, 16),
        "GC balances the resources better than GNC, GNC better than RandP, at every load",
        "; ".join(f"{placer} {min(spreads):.2f} to {max(spreads):.2f}" for placer, spreads in means.items()),
        all(a < b < c for a, b, c in zip(*means.values(), strict=True)),
    )


def _low(of: ForwardingSummary, kind: Kind) -> Claim:
    levels = _low_levels(of)
    best = {
        level: min([*ALLOCATIONS, "mckp"], key=lambda policy: of.mean(kind, policy, slowdown, level))
        for level in levels
    }
    over = [_over(of, kind, "bba-gnc", best[level], slowdown, [level])[0] for level in levels]
    return Claim(
        kind,
        _figure(kind, 8, 17),
        "BBA is best for users at low load",
        f"up to {LOW:g}: {_range(over)} beside the best ({', '.join(sorted(set(best.values())))})",
        max(over) <= 0.01,
    )


def _users(of: ForwardingSummary, kind: Kind) -> Claim:
    differences = _over(of, kind, "ta-gnc", "bba-gnc", slowdown, _high_levels(of))
    return Claim(
        kind,
        _figure(kind, 8, 17),
        "TA is as good for users as BBA at high load",
        f"from {HIGH:g}: {_range(differences)} beside BBA",
        max(differences) <= 0.01,
    )


def _machine(of: ForwardingSummary, kind: Kind) -> Claim:
    differences = _over(of, kind, "ta-gnc", "bba-gnc", idletime, _high_levels(of))
    return Claim(
        kind,
        _figure(kind, 9, 18),
        "and better for the machine",
        f"Machine-Idletime from {HIGH:g}: {_range(differences)} beside BBA",
        max(differences) < 0,
    )


def _line(of: ForwardingSummary, kind: Kind, policy: str) -> tuple[float, float]:
    """Slope of ρ^con over the load, and how much of it a straight line explains (R²)."""
    levels = np.array(of.levels)
    congestion = np.array([of.mean(kind, policy, rho_con, level) for level in of.levels])
    if len(levels) < 2:
        return 0.0, 0.0
    slope, _ = np.polyfit(levels, congestion, 1)
    return float(slope), float(np.corrcoef(levels, congestion)[0, 1] ** 2)


def _linear(of: ForwardingSummary, kind: Kind) -> Claim:
    slope, explained = _line(of, kind, "bba-gnc")
    return Claim(
        kind,
        _figure(kind, 8, 17),
        "ρ^con of BBA grows linearly with the load",
        f"{slope:+.2f} a unit of load, R² {explained:.3f}",
        slope > 0 and explained >= 0.95,
    )


def _flat(of: ForwardingSummary, kind: Kind, policy: str) -> Claim:
    slope, _ = _line(of, kind, policy)
    bba, _ = _line(of, kind, "bba-gnc")
    congestion = [of.mean(kind, policy, rho_con, level) for level in of.levels]
    name = policy.removesuffix("-gnc").upper()
    return Claim(
        kind,
        _figure(kind, 8, 17),
        f"ρ^con of {name} varies much less",
        f"{slope:+.2f} a unit of load ({slope / bba:.0%} of BBA's), {min(congestion):.2f} to {max(congestion):.2f}",
        abs(slope) <= bba / 4,
    )


def _knapsack(of: ForwardingSummary, kind: Kind) -> Claim:
    others = [policy for policy in of.papers if policy != "mckp"]
    lower = [
        level
        for level in of.levels
        if any(
            of.mean(kind, "mckp", slowdown, level) <= of.mean(kind, other, slowdown, level)
            for other in others
        )
    ]
    at = of.levels[len(of.levels) // 2]
    worst = max(others, key=lambda policy: of.mean(kind, policy, slowdown, at))
    return Claim(
        kind,
        _figure(kind, 8, 17),
        "MCKP is the worst for users",
        f"at {at:g}: {of.mean(kind, 'mckp', slowdown, at):.1f}, the next ({worst}) "
        f"{of.mean(kind, worst, slowdown, at):.1f}",
        not lower,
    )


def _families(of: ForwardingSummary, kind: Kind) -> Claim:
    costs = [
        float(np.mean(values)) - 1
        for values in of.ratios(kind, ("ta-gnc", "profile"), ("ta-gnc", "truth"), slowdown).values()
    ]
    return Claim(
        kind,
        "11",
        "to know families alone costs TA less than 1 % of Mean-I/O-SlowDown",
        f"{100 * float(np.mean(costs)):+.2f} % ({_range(costs)})",
        max(costs) < 0.01,
    )


def _families_machine(of: ForwardingSummary, kind: Kind) -> Claim:
    over = [
        of.mean(kind, "ta-gnc", idletime, level, "profile")
        / min(of.mean(kind, policy, idletime, level, "profile") for policy in ("bba-gnc", "bba-gc"))
        - 1
        for level in of.levels
    ]
    return Claim(
        kind,
        "11",
        "and leaves TA the best for the machine, beside BBA",
        f"Machine-Idletime {_range(over)} beside BBA's",
        max(over) <= 0.01,
    )


def _static(of: ForwardingSummary, kind: Kind) -> Claim:
    """Excellent is: within 5 % of the best of the others, at medium and high load."""
    levels = [level for level in of.levels if level > LOW] or of.levels
    over = {}
    for name, metric in (("Mean-I/O-SlowDown", slowdown), ("Machine-Idletime", idletime)):
        others = [policy for policy in ALLOCATIONS if policy != "static-gnc"]
        over[name] = [
            of.mean(kind, "static-gnc", metric, level) / min(of.mean(kind, p, metric, level) for p in others)
            - 1
            for level in levels
        ]
    excellent = all(max(values) <= ALIKE for values in over.values())
    wanted = kind == "ost"
    return Claim(
        kind,
        _figure(kind, 8, 12),
        f"Static is {'excellent' if wanted else 'not among the best'} with {'OSTs' if wanted else 'I/O nodes'}",
        "; ".join(f"{name} {_range(values)} beside the best other" for name, values in over.items()),
        excellent == wanted,
    )


def _near(of: ForwardingSummary) -> Claim:
    differences = {
        name: [band.mean for band in difference(of, f"{name}-gnc", slowdown).values()]
        for name in INFORMED_ALLOCATORS
    }
    return Claim(
        "ost",
        "13",
        "OSTs and I/O nodes differ by less than 5 %",
        "; ".join(
            f"{name} {min(values):+.0f} to {max(values):+.0f} %" for name, values in differences.items()
        ),
        all(abs(value) < 5 for values in differences.values() for value in values),
    )


def crossing(of: ForwardingSummary, kind: Kind) -> float:
    """The load from which NSYSA is better for users than BBA, between levels by a straight line; inf: never."""
    gaps = [
        of.mean(kind, "bba-gnc", slowdown, x) - of.mean(kind, "nsysa-gnc", slowdown, x) for x in of.levels
    ]
    for (x, gap), (x2, gap2) in zip(zip(of.levels, gaps), zip(of.levels[1:], gaps[1:])):
        if gap <= 0 < gap2:
            return x + (x2 - x) * -gap / (gap2 - gap)
    return of.levels[0] if gaps and gaps[0] > 0 else float("inf")


def _sooner(of: ForwardingSummary) -> Claim:
    at = {kind: crossing(of, kind) for kind in of.kinds}
    return Claim(
        "ost",
        "12",
        "BBA loses to policies that know the load sooner with OSTs",
        f"NSYSA is better for users from {at['ost']:.2f} on, with I/O nodes from {at['io-node']:.2f}",
        at["ost"] < at["io-node"],
    )
