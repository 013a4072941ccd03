"""What no change may worsen, and what counts then: goals in an order, of which the first that differs decides.

Hard goals count what must not be: a change that makes any of them worse is refused, whatever else it gives; one that
makes one better is worth what it costs. Else soft ones are weighed in the site's order (`part.changes.goals`): the
first of them that differs says whether the change is worth it. A change that was not scored was asked for by a person,
or by who learns: nothing here refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tarazu.parts.changes.model.change import Change, Score

HARD = {
    "dead": "dead or refusing targets that would get files",
    "exclusions": "excluded targets that would get files",
    "pools": "targets outside their pool that would get files",
    "quota": "bytes beyond a quota",
    "space": "targets too full for the files expected",
}
SOFT = ("time", "evenness", "changes")
"""The usual order. time: of jobs, or how much longer than at best; evenness: of load or space; changes: how many."""
SAME = 0.005
"""Relative difference below which two figures are the same."""


class CannotMend(msgspec.Struct, frozen=True):
    """There is a problem, and no change within the limits solves it."""

    lever: str
    target: str
    why: str


def refusal(change: Change, order: Sequence[str] = SOFT) -> str:
    """Why it is not to be made; empty: it may be."""
    scores = {score.measure: score for score in change.scores}
    for name, what in HARD.items():
        score = scores.get(name)
        if score and score.after > score.before:
            return f"{score.unit or what}: {score.before:g} now, {score.after:g} after it"
    if not scores or any(score.after < score.before for name, score in scores.items() if name in HARD):
        return ""
    for name in order:
        score = scores.get(name)
        if score is None or _same(score):
            continue
        if score.after < score.before:
            return ""
        if name == "changes":
            continue
        return f"{name} would be worse: {score.before:.3g} now, {score.after:.3g} after it"
    return "it gains nothing"


def ranked(changes: Iterable[Change], order: Sequence[str] = SOFT) -> list[Change]:
    """What mends first, then by what they give: of the hard goals, then of each soft one."""

    def key(change: Change) -> tuple[object, ...]:
        gains = {score.measure: score.before - score.after for score in change.scores}
        return (
            not change.mends,
            *(-gains.get(name, 0.0) for name in HARD),
            *(-gains.get(name, 0.0) for name in order),
        )

    return sorted(changes, key=key)


def _same(score: Score) -> bool:
    return abs(score.after - score.before) <= SAME * max(abs(score.before), abs(score.after))
