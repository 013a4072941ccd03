"""The study in its folder: rows as they come, then claims, and the figures as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tarazu.errors import Unavailable
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study import cases
from tarazu.parts.forwarding.study.claims import Claim, claims
from tarazu.parts.forwarding.study.figures import draw
from tarazu.parts.forwarding.study.summary import Beside, ForwardingSummary, beside
from tarazu.parts.forwarding.study.workload import LEVELS, SETS
from tarazu.sim.study import study

SHORT_LEVELS, SHORT_SETS = (0.1, 0.8), 3
"""To see that it works; nothing follows from so few."""


class StudyFindings(msgspec.Struct, frozen=True):
    """What the study says."""

    curves: str
    """Where the curves come from."""
    sets: int
    """At each level."""
    claims: tuple[Claim, ...]
    beside: tuple[Beside, ...]
    """Our policy beside the best of the paper's."""
    lost: tuple[str, ...]
    """Cases without rows, and why."""


def run(
    folder: Path,
    curves: cases.Curves = None,
    kinds: Sequence[Kind] = cases.KINDS,
    levels: Sequence[float] = LEVELS,
    sets: int = SETS,
    *,
    jobs: int = 0,
) -> StudyFindings:
    """Compute what `folder` has no rows of yet; write `claims.json`, and with matplotlib the figures.

    Arguments as those of `cases.cases` and `study.run`. Raises BadInput, Unavailable; on KeyboardInterrupt all rows
    that were done are on the disk.
    """
    todo = cases.cases(curves, kinds, levels, sets)
    asked = {"curves": cases.note(curves, kinds), "kinds": kinds, "levels": levels, "sets": sets}
    text = msgspec.json.format(msgspec.json.encode(asked)).decode() + "\n"
    done = study.answers(todo, cases.ForwardingRow, folder, ("study.json", text), jobs=jobs)
    whole = not done.lost
    of = ForwardingSummary(done.rows)
    findings = StudyFindings(
        cases.note(curves, kinds),
        of.sets,
        tuple(claims(of)) if whole else (),
        tuple(beside(of)) if whole else (),
        done.lost,
    )
    (folder / "claims.json").write_bytes(msgspec.json.format(msgspec.json.encode(findings)))
    if whole:
        with suppress(Unavailable):
            draw(of, folder)
    return findings
