"""The study in its folder: rows as they come, then `report.html`, the figures as numbers and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from tarazu import drawing
from tarazu.errors import Unavailable
from tarazu.parts.forwarding.application import Kind
from tarazu.parts.forwarding.study import cases
from tarazu.parts.forwarding.study.claims import Claim, claims
from tarazu.parts.forwarding.study.figures import Figure, Panel, figures, table
from tarazu.parts.forwarding.study.levels import APPLICATIONS, LEVELS, SETS
from tarazu.parts.forwarding.study.pictures import name_of, pictures, title_of
from tarazu.parts.forwarding.study.summary import Band, Beside, ForwardingSummary, beside
from tarazu.sim.study import report, study

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
    figures: tuple[Figure, ...]
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
    fresh: bool = False,
) -> StudyFindings:
    """Compute what `folder` has no rows of yet, and write the report.

    Arguments as those of `cases.cases` and `study.run`. Raises BadInput, Unavailable; on KeyboardInterrupt all rows
    that were done are on the disk.
    """
    todo = cases.cases(curves, kinds, levels, sets)
    asked = {"curves": cases.note(curves, kinds), "kinds": kinds, "levels": levels, "sets": sets}
    text = msgspec.json.format(msgspec.json.encode(asked)).decode() + "\n"
    done = study.answers(todo, cases.ForwardingRow, folder, ("study.json", text), jobs=jobs, fresh=fresh)
    whole = not done.lost
    of = ForwardingSummary(done.rows)
    findings = StudyFindings(
        cases.note(curves, kinds),
        of.sets,
        tuple(claims(of)) if whole else (),
        tuple(beside(of)) if whole else (),
        tuple(figures(of)) if whole else (),
        done.lost,
    )
    (folder / "figures.json").write_bytes(msgspec.json.format(msgspec.json.encode(findings)))
    _write(findings, folder)
    return findings


def _write(found: StudyFindings, folder: Path) -> None:
    notes = [f"No result: {text}" for text in found.lost]
    drawn = {}
    try:
        drawn = {picture.name: picture for picture in pictures(found.figures)}
    except Unavailable as error:
        notes.append(f"Left out: {error}.")
    for picture in drawn.values():
        (folder / f"{picture.name}.png").write_bytes(picture.light)
    parts = [
        "<h1>How many and which I/O resources</h1>",
        f"<p class=quiet>{found.sets} sets of {APPLICATIONS} applications at each load; {escape(found.curves)}</p>",
        *(f"<p class=warning>{escape(note)}</p>" for note in notes),
        "<h2>The paper says, seen here</h2>",
        report.table(CLAIMS, (claim_cells(claim) for claim in found.claims), left=4),
    ]
    if found.beside:
        parts += [
            "<h2>Our policy beside the best of the paper's</h2>",
            report.table(BESIDE, (beside_cells(one) for one in found.beside), left=2),
        ]
    for figure in found.figures:
        seen = drawn.get(name_of(figure))
        parts.append(drawing.figure(seen) if seen else f"<h2>{escape(title_of(figure))}</h2>")
        parts += [report.table(*panel_table(panel)) for panel in figure.panels]
    parts += ["<h2>Made with</h2>", report.table(("what", "version"), report.versions(), left=2)]
    (folder / "report.html").write_text(drawing.document("How many and which I/O resources", parts))


CLAIMS = ("resources", "figure", "the paper says", "seen here", "holds")
BESIDE = (
    *("resources", "known", "load", "Mean-I/O-SlowDown", "best of the paper's", "ratio", ""),
    *("Machine-Idletime", "best of the paper's", "ratio", ""),
)


def claim_cells(claim: Claim) -> tuple[str, ...]:
    return claim.kind, claim.figure, claim.paper, claim.seen, "yes" if claim.holds else "NO"


def beside_cells(one: Beside) -> tuple[str, ...]:
    return (
        *(one.kind, "curves" if one.told == "truth" else "families", f"{one.level:g}"),
        *(
            f"{one.slowdown:.3f}",
            f"{one.best_slowdown:.3f}",
            f"{one.slowdown_ratio:.3f}",
            one.best_slowdown_by,
        ),
        *(
            f"{one.idletime:.4f}",
            f"{one.best_idletime:.4f}",
            f"{one.idletime_ratio:.3f}",
            one.best_idletime_by,
        ),
    )


def panel_table(panel: Panel) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    def number(band: Band) -> str:
        return f"{band.mean:.3g} ({band.low:.3g} to {band.high:.3g})"

    return table(panel, number)
