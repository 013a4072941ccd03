"""From what one look at a pool comes to (`choosing`) to the change that is wanted of it, with its scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tarazu.model import Ost
from tarazu.ost_state import NEARLY_FULL, SICK, UNKNOWN, Verdict
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.model.held import Held
from tarazu.parts.pool import choosing
from tarazu.parts.pool.choosing import LEAVE_S, Memory, Round, choose
from tarazu.parts.pool.members import EXISTS, IN, OUT, POOL, osts_in, parts_of, values_of
from tarazu.past import no_later
from tarazu.ranges import fold

LEVER = "pool"
GONE = "somebody else has removed it: tarazu change pool --apply creates it again"
SLOWEST = 10.0
"""So many times as long at most does a job count to take on an OST with a problem."""
TROUBLE_S = 3600.0
"""So long an OST that is dead or silent may be failing over; after that it is away, and others may come back."""

UNITS = {
    "dead": "dead or refusing OSTs in the pool",
    "exclusions": "excluded OSTs in the pool",
    "pools": "OSTs in the pool that are not in part.pool.of",
    "space": "OSTs in the pool that are full or nearly so",
    "time": "times as long as on OSTs that are well",
    "evenness": "share of the OSTs that are left out",
}


class Known(msgspec.Struct, frozen=True):
    """Of one pool, as it is now."""

    target: str
    """`scratch.good`."""
    osts: Sequence[Ost]
    """All of its file system."""
    found: list[int] | None
    """Its members; None where there is no such pool."""
    of: Collection[int] | None
    """Members of `part.pool.of`; None: there is no such limit."""
    held: Held | None
    theirs: Mapping[str, str]
    """Parts that somebody else has changed since."""


class Planned(msgspec.Struct, frozen=True):
    round: Round
    change: Change | None = None
    """None: it is nothing of ours, and stays as it is."""
    cannot_mend: CannotMend | None = None


def plan(
    known: Known, memory: Mapping[int, Memory], now_s: float, floor: float, *, anew: bool = False
) -> Planned:
    """`floor`: as `part.pool.floor`; `anew`: what somebody else has changed is ours again, and nothing waits."""
    held = known.held
    if POOL in known.theirs:
        if not anew:
            return Planned(Round(nothing=GONE), held.change if held else None)
        held = None
    theirs = {} if anew else known.theirs
    candidates = _candidates(known, held) - {int(name) for name in theirs}
    members = set(known.found or ())
    if held:  # what is ours is to be as it was wanted, also where that was not done to its end
        members = (members - candidates) | (osts_in(held.change.wanted) & candidates)
    if members:
        round_ = choose(
            now_s, known.osts, members, candidates, {} if anew else memory,
            floor=floor, full=NEARLY_FULL, leave_s=0.0 if anew else LEAVE_S,
        )  # fmt: skip
    else:
        round_ = _beginning(known.osts, candidates, now_s, floor)
    cannot = CannotMend(LEVER, known.target, round_.stuck) if round_.stuck else None
    if round_.nothing or not (held or round_.add or round_.remove):
        return Planned(round_, held.change if held else None, cannot)
    after = (members | {c.ost for c in round_.add}) - {c.ost for c in round_.remove}
    wanted = {**(held.change.wanted if held else {}), POOL: EXISTS}
    wanted |= {str(index): IN if index in after else OUT for index in sorted(candidates)}
    if held and wanted == held.change.wanted:
        return Planned(round_, held.change, cannot)
    return Planned(round_, _change(known, round_, wanted, after, candidates), cannot)


def measures(
    osts: Iterable[Ost], members: Collection[int], candidates: int, of: Collection[int] | None = None
) -> dict[str, float]:
    """What members of a pool are like, less is better; `of`: as in `Known`.

    time        how many times as long a job takes as on OSTs that are well, where each candidate gets as much
    evenness    share of the candidates that are left out, whose load the others bear
    """
    inside = [ost for ost in osts if ost.index in members]
    verdicts = [ost.judged.verdict for ost in inside]
    return {
        "time": 1.0 + sum(map(_slowness, inside)) / max(1, candidates),
        "dead": verdicts.count(Verdict.DEAD) + verdicts.count(Verdict.REFUSING),
        "exclusions": verdicts.count(Verdict.EXCLUDED),
        "pools": 0 if of is None else len({*members} - {*of}),
        "space": sum(
            ost.fill >= NEARLY_FULL or verdict is Verdict.FULL
            for ost, verdict in zip(inside, verdicts, strict=True)
        ),
        "evenness": max(0.0, 1.0 - len(inside) / max(1, candidates)),
    }


def trouble(osts: Iterable[Ost], now_s: float) -> str:
    """Why only what mends is done now; empty: nothing fails over."""
    for ost in osts:
        state = ost.judged
        since_s = no_later(state.since_s, now_s) or now_s
        if state.verdict in {Verdict.DEAD, *UNKNOWN} and since_s + TROUBLE_S > now_s:
            return f"OST {ost.index} is {state}"
    return ""


def _slowness(ost: Ost) -> float:
    verdict = ost.judged.verdict
    if verdict in (Verdict.DEAD, Verdict.REFUSING):
        return SLOWEST - 1.0
    if verdict not in (Verdict.SICK, Verdict.DEGRADED):
        return 0.0
    least = 1.0 / SICK  # of one whose speed nobody could measure
    return min(SLOWEST, max(least, 1.0 / max(ost.relative_speed or 1.0, 1.0 / SLOWEST))) - 1.0


def _candidates(known: Known, held: Held | None) -> set[int]:
    """Of a pool that the site made: the OSTs that the site put there; of ours: those of `part.pool.of`, or all."""
    here = {ost.index for ost in known.osts}
    if known.of is not None:
        return {*known.of} & here
    before = values_of(held.before if held else parts_of(known.found))
    if before.get(POOL) == EXISTS and osts_in(before):
        return {int(name) for name in held.change.wanted if name != POOL} if held else osts_in(before)
    return here


def _beginning(osts: Sequence[Ost], candidates: set[int], now_s: float, floor: float) -> Round:
    """All that are well, at once."""
    first = choose(
        now_s, osts, candidates, candidates, {}, floor=floor, full=NEARLY_FULL, leave_s=0.0, most=len(osts),
    )  # fmt: skip
    start = candidates - {change.ost for change in first.remove}
    adds = tuple(choosing.Change(index, "well when the pool was made") for index in sorted(start))
    return Round(() if first.nothing else adds, (), first.remove, first.nothing, first.stuck, first.memory)


def _change(
    known: Known, round_: Round, wanted: dict[str, str], after: set[int], candidates: set[int]
) -> Change:
    changed = (*round_.remove, *round_.add)
    whys = dict.fromkeys(change.why for change in changed)
    why = "; ".join(f"OST {fold(sorted(c.ost for c in changed if c.why == why))}: {why}" for why in whys)
    mends = bool(round_.remove) or not known.found  # one that is just made keeps files off what is amiss
    scores: tuple[Score, ...] = ()
    if known.found and changed:
        was, will = (measures(known.osts, each, len(candidates), known.of) for each in (known.found, after))
        names = [name for name in was if name != "evenness" or not round_.remove]
        scores = (
            *(Score(name, was[name], will[name], UNITS[name]) for name in names),
            Score("changes", 0, len(changed), "OSTs that come or go"),
        )
    return Change(
        lever=LEVER, target=known.target, wanted=wanted, why=why or "OSTs that are new", asked_by="tarazu-pool",
        scores=scores, mends=mends,
    )  # fmt: skip
