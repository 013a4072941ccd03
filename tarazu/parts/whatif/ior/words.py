"""What slow ranks cost, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tarazu.parts.whatif.ior.lost import BETWEEN_NODES, Lost


def seconds(value: float) -> str:
    """Three digits, and no fewer than whole ones."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


MOST_NAMED = 8
"""Phases that are named in a sentence."""
NOT_SAID = (
    "Which OSTs, servers, nodes or other users held ranks up is not in IOR's output; a Darshan log of such a run "
    "names the OSTs."
)
ALL_ALIKE = "a limit, for it would take slow nodes, the network and other users away, too"


def answer(where: str, phases: Sequence[Lost]) -> list[str]:
    """Sentences; the first is the answer."""
    known = [of for of in phases if of.at_most_share is not None]
    if not known:
        return [f"{where}: cannot be compared, because {_why(phases)}."]
    return [
        f"{where}: {_lost(where, known)}.",
        f"Placement could have saved {_each(known, [f'{of.at_most_share:.1%}' for of in known])} at best, with all "
        f"ranks as fast as the first: {ALL_ALIKE}.",
        *[_nodes(of) for of in known if of.between_nodes and of.between_nodes.share > BETWEEN_NODES][
            :MOST_NAMED
        ],
        NOT_SAID,
        *_not_known(phases),
    ]


def _lost(where: str, known: Sequence[Lost]) -> str:
    if len(known) == 1:
        (of,) = known
        even = "" if of.mean_s is None else f"; even ones would have taken {seconds(of.mean_s)} s"
        return (
            f"{_named(where, of.phase)}lost {_share(of)} of its time to its slowest ranks: of {of.ranks:,} the first "
            f"ended after {seconds(of.first_s or 0.0)} s, the last after {seconds(of.last_s or 0.0)} s{even}"
        )
    first, *others = known
    rest = _some([f"{of.phase} {_share(of)}" for of in others])
    return f"{first.phase} lost {_share(first)} of its time to its slowest ranks, {rest}"


def _named(where: str, phase: str) -> str:
    """Not where the file's name says it."""
    return "" if Path(where).stem == phase else f"{phase} "


def _share(of: Lost) -> str:
    return "an unknown share" if of.lost_share is None else f"{of.lost_share:.1%}"


def _each(known: Sequence[Lost], shares: Sequence[str]) -> str:
    if len(known) == 1:
        return shares[0]
    return _some([f"{share} ({of.phase})" for of, share in zip(known, shares, strict=True)])


def _nodes(of: Lost) -> str:
    assert of.between_nodes
    return (
        f"{of.phase}: {of.between_nodes.share:.0%} of the spread of its ranks lies between nodes "
        f"(if ranks were dealt {of.between_nodes.dealt}): look at nodes before OSTs."
    )


def _not_known(phases: Sequence[Lost]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for of in phases:
        if of.at_most_share is None:
            reasons.setdefault(of.why_not, []).append(of.phase)
    return [f"Of {_some(names)} nothing can be said, because {why}." for why, names in reasons.items()]


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:MOST_NAMED])} and {more} others"


def _why(phases: Sequence[Lost]) -> str:
    reasons = dict.fromkeys(of.why_not for of in phases)
    return "; ".join(reasons) if len(reasons) < 3 else f"{next(iter(reasons))}; and others"
