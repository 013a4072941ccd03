"""Which OSTs a pool of good ones should lose or get now.

An OST leaves when it is one of `tarazu.ost_state.AVOIDED` (dead, refusing, full or nearly so, sick, degraded or
excluded), and that for `LEAVE_S`. It comes back once it was well for `WELL_S` without a break and left `HOUR_S` ago
at least: so no OST changes a pool more than twice in any hour, and one that is sick again never has to wait inside.
What is not known well changes nothing: an OST without fresh reports stays where it is, and with too many of them all
do. A pool never falls below its floor: of those that should leave then the gravest go. Each change takes the MGS and
all clients seconds, and a record of the file system's configuration log for good: at most `MOST` a round, the gravest
first, and while any leave none comes back. Those that were never taken out come all at once: a new OSS, or one of which
mdsd had heard nothing yet when the pool was made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import ceil

import msgspec

from tarazu.model import Ost
from tarazu.ost_state import AVOIDED, NEARLY_FULL, ROOMY, UNKNOWN, Verdict
from tarazu.past import no_later
from tarazu.units import counted

HOUR_S = 3600.0
LEAVE_S = 30.0
"""An OST has a problem for so long before it leaves."""
WELL_S = 600.0
MOST = 4
QUORUM = 0.75
"""Share of a file system's OSTs of which something fresh must be known."""
BACK_BELOW = NEARLY_FULL - ROOMY
"""An OST that left because it is nearly full comes back with so much less of its space used."""


class Memory(msgspec.Struct, frozen=True):
    """What earlier rounds saw of one OST; Unix times."""

    left_s: float = 0.0
    """When it left the pool last."""
    amiss_s: float = 0.0
    """When it last had a problem."""
    since_s: float = 0.0
    """From when on it has been, without a break; 0: it is not."""
    changes_s: tuple[float, ...] = ()
    """Its changes of the last hour."""


class Change(msgspec.Struct, frozen=True):
    """One OST that comes or goes."""

    ost: int
    why: str


class Round(msgspec.Struct, frozen=True):
    """What one look came to."""

    add: tuple[Change, ...] = ()
    remove: tuple[Change, ...] = ()
    waiting: tuple[Change, ...] = ()
    """Those that should change and do not now, and why not."""
    nothing: str = ""
    """Why nothing is changed at all."""
    stuck: str = ""
    """Why some stay that should leave, whatever is done."""
    memory: dict[int, Memory] = {}


def choose(
    now_s: float,
    osts: Sequence[Ost],
    members: Collection[int],
    candidates: Collection[int],
    memory: Mapping[int, Memory],
    *,
    floor: float,
    full: float,
    leave_s: float = LEAVE_S,
    most: int = MOST,
) -> Round:
    """`osts`: those of one file system; `members`: of the pool now; `candidates`: OSTs that may be in it (others are
    left as they are); `floor`: least share of the candidates that stays in; `full`: share of its space from which an
    OST leaves; `leave_s`, `most`: as LEAVE_S, MOST.
    """
    memory = {index: _no_later(of, now_s) for index, of in memory.items()}
    known = [o for o in osts if o.verdict not in UNKNOWN]
    seen = {o.index: _seen(now_s, o, full, memory.get(o.index, Memory()), o.index in members) for o in known}
    remembered = {**memory, **{index: noted for index, (_, _, noted) in seen.items()}}
    if not osts or len(known) < QUORUM * len(osts):
        fresh = f"{len(known)} of {counted(len(osts), 'OST')} have fresh reports"
        nothing = f"{fresh}: at least {QUORUM:.0%} are needed"
        return Round(nothing=nothing, stuck=nothing if osts else "", memory=dict(memory))
    add, remove, waiting = [], [], []
    for index in (o.index for o in sorted(known, key=lambda o: -o.verdict.weight)):
        verdict, why, of = seen[index]
        if index not in candidates or (not verdict) == (index in members):
            continue
        if why_not := _waits(now_s, leave_s if verdict else None, of):
            waiting.append(Change(index, why_not))
        elif verdict:
            remove.append(Change(index, why))
        else:
            add.append(Change(index, why))
    left = [index for index in members if index in candidates]
    least = max(1, ceil(floor * len(candidates) - 1e-9))
    may_leave = max(0, len(left) - least)
    waiting += [
        Change(c.ost, f"{c.why}; stays: fewer than {least} would be left") for c in remove[may_leave:]
    ]
    stuck = ""
    if remove[may_leave:]:
        words = [verdict for index, (verdict, _, _) in seen.items() if verdict and index in candidates]
        amiss = f"{len(words)} of {counted(len(candidates), 'OST')} are {', '.join(sorted(set(words)))}"
        stuck = f"{amiss}: at most {max(0, len(candidates) - least)} may leave (part.pool.floor)"
    remove = remove[:may_leave]
    # What leaves is urgent; what comes back is not.
    now, later = remove[:most], remove[most:]
    new = [c for c in add if c.ost not in remembered or not remembered[c.ost].left_s]
    again = [c for c in add if c not in new]
    back = [] if now else [*new, *again[:most]]
    waiting += [Change(c.ost, f"{c.why}; next round") for c in (*later, *add) if c not in back]
    return Round(tuple(back), tuple(now), tuple(waiting), "", stuck, remembered)


def changed(memory: Mapping[int, Memory], round_: Round, now_s: float) -> dict[int, Memory]:
    """The memory once the changes of `round_` are made."""
    made = dict(memory)
    for change in (*round_.add, *round_.remove):
        of = made.get(change.ost, Memory())
        recent = tuple(s for s in of.changes_s if s > now_s - HOUR_S)
        of = msgspec.structs.replace(of, changes_s=(*recent, now_s))
        if change in round_.remove:
            of = msgspec.structs.replace(of, left_s=now_s)
        made[change.ost] = of
    return made


def _no_later(of: Memory, now_s: float) -> Memory:
    times = (of.left_s, of.amiss_s, of.since_s, *of.changes_s)
    if max(times) <= now_s:
        return of
    left_s, amiss_s, since_s, *changes_s = (no_later(at_s, now_s) for at_s in times)
    return Memory(left_s, amiss_s, since_s, tuple(changes_s))


def _seen(now_s: float, ost: Ost, full: float, of: Memory, inside: bool) -> tuple[str, str, Memory]:
    """(verdict by which it does not belong there, or empty; in words; what is remembered of it)."""
    state = ost.judged
    verdict, why = str(state.verdict), str(state)
    if state.verdict is Verdict.NEARLY_FULL or state.verdict not in AVOIDED:
        # `full` decides, with a distance for coming back.
        if ost.fill < (full if inside else full - BACK_BELOW):
            return "", "well", msgspec.structs.replace(of, since_s=0.0)
        verdict = str(Verdict.NEARLY_FULL)
        why = f"{verdict}: {ost.fill:.0%} of its space is used"
    since = of.since_s or (min(state.since_s, now_s) if state.since_s and state.verdict == verdict else now_s)
    return verdict, why, msgspec.structs.replace(of, amiss_s=now_s, since_s=since)


def _waits(now_s: float, leave_s: float | None, of: Memory) -> str:
    """Why this change has to wait; empty: it has not. `leave_s` None: it would come back."""
    recent = [s for s in of.changes_s if s > now_s - HOUR_S]
    if len(recent) >= 2:
        return f"changed twice in the last hour: in {_minutes(recent[-2] + HOUR_S - now_s)}"
    if leave_s is not None:
        return f"in trouble for less than {leave_s:g} s" if of.since_s + leave_s > now_s else ""
    wait_s = max(of.amiss_s + WELL_S if of.amiss_s else 0.0, of.left_s + HOUR_S if of.left_s else 0.0) - now_s
    return f"no problem any more; comes back in {_minutes(wait_s)} if it stays so" if wait_s > 0 else ""


def _minutes(seconds: float) -> str:
    return f"{ceil(seconds / 60)} min" if seconds >= 60 else f"{ceil(seconds)} s"
