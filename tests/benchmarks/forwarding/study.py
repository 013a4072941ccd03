"""The figures and claims of paper A, our policy beside the best of the paper's, and how long it all takes."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study import study
from tarazu.parts.forwarding.study.claims import Claim
from tarazu.parts.forwarding.study.workload import LEVELS, SETS
from tarazu.sim.study.runner import cores
from tests.benchmarks.figure import Figure

MOST_S = 600.0
"""For all of it on two cores."""
MOST_OVER = 1.01
"""Our policy beside the best of the paper's, at each level."""
NAMES = {"io-node": "I/O nodes", "ost": "OSTs"}

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


def measure(short: bool) -> list[Figure]:
    """The short form judges nothing but that it works: so few sets say nothing."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        found = study.run(
            Path(folder),
            levels=study.SHORT_LEVELS if short else LEVELS,
            sets=study.SHORT_SETS if short else SETS,
            jobs=1 if short else 0,
        )
        took_s = time.monotonic() - began
    # Not on standard output, which may be JSON.
    print(f"  {found.sets} sets at each load; {found.curves}", file=sys.stderr)
    return figures(found, took_s, judged=not short)


def figures(found: study.StudyFindings, took_s: float, judged: bool) -> list[Figure]:
    """Claims of the paper are 1 where they hold here and 0 where not, which must be as docs/forwarding.md says."""
    return [
        Figure("study, on so many cores as there are", took_s, "s", most=MOST_S if judged else None),
        Figure("cores", cores(), ""),
        Figure("cases without a result", len(found.lost), "", most=0),
        *(_claim(claim, judged) for claim in found.claims),
        *_beside(found, judged),
    ]


def _claim(claim: Claim, judged: bool) -> Figure:
    expected = 0.0 if claim.paper in NOT_HERE[claim.kind] else 1.0
    limit = expected if judged else None
    return Figure(f"{NAMES[claim.kind]}: {claim.paper}", float(claim.holds), "", most=limit, least=limit)


def _beside(found: study.StudyFindings, judged: bool) -> list[Figure]:
    figures = []
    for kind, told, metric in dict.fromkeys((one.kind, one.told, one.metric) for one in found.beside):
        worst = max(b.ratio for b in found.beside if (b.kind, b.told, b.metric) == (kind, told, metric))
        known = "" if told == "truth" else ", families alone known"
        what = f"{NAMES[kind]}{known}: ours / best, {metric}, worst load"
        figures.append(Figure(what, worst, "", most=MOST_OVER if judged else None))
    return figures
