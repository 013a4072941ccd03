"""Tables of `tarazu whatif` for results of IOR and IO500."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import median

from tarazu.cli.output import print_table
from tarazu.parts.whatif.ior.lost import Lost
from tarazu.parts.whatif.ior.words import seconds

HEADERS = ("ranks", "first s", "even s", "last s", "lost", "at most", "between nodes", "known by")


def print_phases(phases: Sequence[Lost]) -> None:
    """A line for each phase of one result."""
    rows = [(of.phase, *_cells(of)) for of in phases if of.at_most_share is not None]
    if rows:
        print()
        print_table(("phase", *HEADERS), rows)


def print_results(results: Sequence[tuple[str, Sequence[Lost]]]) -> None:
    """A line for each phase of several, and the median of each kind of phase."""
    known = [(where, of) for where, phases in results for of in phases if of.at_most_share is not None]
    if not known:
        return
    common = os.path.commonpath([os.path.dirname(os.path.abspath(where)) for where, _ in known])
    rows: list[tuple[object, ...]] = [
        (os.path.relpath(where, common), of.phase, *_cells(of)) for where, of in known
    ]
    kinds: dict[str, list[Lost]] = {}
    for _, of in known:
        kinds.setdefault(of.phase.replace("_", "-"), []).append(of)
    for kind, of_kind in kinds.items():
        if len(of_kind) > 1:
            lost = [of.lost_share for of in of_kind if of.lost_share is not None]
            most = [of.at_most_share for of in of_kind if of.at_most_share is not None]
            rows.append(
                (f"median of {len(of_kind)}", kind, "", "", "", "", _share(lost), _share(most), "", "")
            )
    print()
    print_table(("result", "phase", *HEADERS), rows, left=2)


def _share(values: Sequence[float]) -> str:
    return f"{median(values):.1%}" if values else "unknown"


def _cells(of: Lost) -> tuple[object, ...]:
    return (
        f"{of.ranks:,}",
        seconds(of.first_s or 0.0),
        "unknown" if of.mean_s is None else seconds(of.mean_s),
        seconds(of.last_s or 0.0),
        "unknown" if of.lost_share is None else f"{of.lost_share:.1%}",
        "unknown" if of.at_most_share is None else f"{of.at_most_share:.1%}",
        "-" if of.between_nodes is None else f"{of.between_nodes.share:.0%}",
        of.seen_by,
    )
