"""Which causes cost a run its time, beside the application's earlier runs and the system meanwhile.

What is lost is the I/O time above the expected: of earlier runs like it, the middle of their time per byte times its
bytes; without any, what the model says at the highest rates seen of its OSTs. A cause gets the seconds that the model
(`model`) gives it in this run above what it usually gives it; where they are more than is lost, each gets less in
proportion. The rest is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from tarazu.parts.why import words
from tarazu.parts.why.facts import Cause, Explanation, Kind, Run
from tarazu.parts.why.model import Model, Rates, Usual, highest_rate, own_rate
from tarazu.parts.why.state import StateCost
from tarazu.then import System
from tarazu.units import counted

MOST_EARLIER = 20
"""The newest that are like it."""
RANKS_WITHIN, BYTES_WITHIN = 2.0, 4.0
"""Factors within which an earlier run is like this one."""
LEAST_LOSS, LEAST_OF_FEW = 0.1, 0.25
"""Of the expected time; less is no slow run, with so few earlier ones that nobody knows how much they differ."""
LEAST_S = 0.5
"""Seconds that are worth an explanation; what takes no longer differs by chance."""
SPREAD = 3 * 1.4826
"""Times the middle distance of earlier runs from their middle: beyond is no chance (three standard deviations)."""
SPREAD_FROM = 4
"""Earlier runs from which their spread tells anything."""
LEAST_EXPLAINED = 0.25
"""Of the time above what its OSTs can do at best: a run without an earlier one is called slow where causes explain so
much of it, for hardly any program reaches the highest rates ever seen."""
LEAST_SHARE = 0.01
"""Of the lost time; a smaller cause is none."""


def causes(run: Run, earlier: Sequence[Run], system: System | None = None) -> Explanation:
    """Why `run` took as long as it did, beside `earlier` ones of the same application and beside `system`.

    `earlier`: any of the application, each with its own `system` where that is known; those of another signature
    (ranks, bytes within a factor) are passed over. `system` None: `run.system`.
    """
    if system is not None:
        run = msgspec.structs.replace(run, system=system)
    all_like = like_it(run, earlier)
    like = all_like[-MOST_EARLIER:]
    notes = list(words.gaps(run, like))
    if run.io_s <= 0 or run.bytes <= 0:
        return _nothing(run, f"no I/O of {run.id} was timed", notes)
    highest = highest_rate([run.system, *(of.system for of in like)])
    usual = _usual(like)
    rates = _rates(run, like, highest)
    if like:
        expected_s = run.bytes * median(of.io_s / of.bytes for of in like)
        by = f"the middle of {counted(len(like), 'earlier run')}, by bytes"
    elif rates:
        expected_s = Model(run, run.system, rates, usual).seconds(())
        by = "the highest rates seen of its OSTs; there is no earlier run like it"
    else:
        return _nothing(
            run, "nothing to compare it with: no earlier run like it, and no rates of its OSTs", notes
        )
    more = run.bytes / median(of.bytes for of in like) if like else 1.0
    lost_s = run.io_s - expected_s
    if lost_s < max(limit(like) * expected_s, LEAST_S):
        return Explanation(
            run.io_s,
            expected_s,
            by,
            0.0,
            False,
            (),
            0.0,
            words.not_slow(run, expected_s, by, more),
            more,
            tuple(notes),
        )
    found: list[Cause] = []
    model = Model(run, run.system, rates, usual) if rates else None
    extra = _extra(model, like, rates) if model and rates else {}
    learned = StateCost(run, all_like, expected_s)
    by_state = {kind: s for kind, s in learned.seconds.items() if s > extra.get(kind, 0.0)}
    extra |= by_state
    total = sum(extra.values())
    scale = min(1.0, lost_s / total) if total else 0.0
    for kind, seconds in extra.items():
        share = scale * seconds / lost_s
        if share >= LEAST_SHARE:
            text, evidence = (
                learned.said(kind) if kind in by_state or model is None else words.said(kind, model)
            )
            found.append(Cause(kind, share, share * lost_s, text, evidence))
    order = list(Kind)
    found.sort(key=lambda cause: (-cause.share, order.index(cause.kind)))
    unknown = max(0.0, 1.0 - sum(cause.share for cause in found))
    if not like and 1 - unknown < LEAST_EXPLAINED:
        sentence = words.first(run, expected_s)
        return Explanation(run.io_s, expected_s, by, 0.0, False, (), 0.0, sentence, more, tuple(notes))
    sentence = words.slow(run, expected_s, by, lost_s, found, unknown)
    return Explanation(
        run.io_s, expected_s, by, lost_s, True, tuple(found), unknown, sentence, more, tuple(notes)
    )


def like_it(run: Run, earlier: Sequence[Run]) -> list[Run]:
    """Those of `earlier` that began before and are of its size, the newest last."""

    def within(a: float, b: float, factor: float) -> bool:
        return a > 0 and b > 0 and max(a, b) <= factor * min(a, b)

    like = [
        of
        for of in earlier
        if of.start_s < run.start_s
        and of.io_s > 0
        and within(of.ranks, run.ranks, RANKS_WITHIN)
        and within(of.bytes, run.bytes, BYTES_WITHIN)
    ]
    return sorted(like, key=lambda of: of.start_s)


def limit(like: Sequence[Run]) -> float:
    """Share of the expected time from which a loss is none of chance."""
    if len(like) < SPREAD_FROM:
        return LEAST_OF_FEW
    of_byte = [of.io_s / of.bytes for of in like]
    middle = median(of_byte)
    return max(LEAST_LOSS, SPREAD * median(abs(value - middle) for value in of_byte) / middle)


def _usual(like: Sequence[Run]) -> Usual:
    laid = [of for of in like if of.ost_bytes]
    metadata = [of.system.metadata_per_s for of in like if of.system and of.system.metadata_per_s]
    return Usual(
        round(median(len(of.ost_bytes) for of in laid)) if laid else 0,
        frozenset(index for of in laid for index in of.ost_bytes),
        median(metadata) if metadata else None,
    )


def _rates(run: Run, like: Sequence[Run], highest: float | None) -> Rates | None:
    """What its OSTs give, as far as earlier runs or their own past tell; None: nobody knows."""
    alike = [of for of in like if bool(of.ost_bytes) == bool(run.ost_bytes)]
    known = [rate for of in alike if (rate := own_rate(of, highest)) is not None]
    if known:
        rate = median(known)
        return Rates(rate, max(rate, highest or rate))
    return Rates(highest, highest) if highest and run.ost_bytes else None


def _extra(model: Model, like: Sequence[Run], rates: Rates) -> dict[Kind, float]:
    """Seconds of each cause above what is usual for it."""
    run = model.run
    costs = model.costs()
    usually: dict[Kind, list[float]] = {kind: [] for kind in costs}
    for of in like:
        if bool(of.ost_bytes) != bool(run.ost_bytes):
            continue
        own = Model(of, of.system, rates, model.usual).costs()
        for kind in costs:
            usually[kind].append(own.get(kind, 0.0) * run.bytes / of.bytes)
    extra = {k: seconds - (median(usually[k]) if usually[k] else 0.0) for k, seconds in costs.items()}
    return {kind: seconds for kind, seconds in extra.items() if seconds > 0}


def _nothing(run: Run, why: str, notes: list[str]) -> Explanation:
    return Explanation(run.io_s, None, "", 0.0, False, (), 0.0, why, 1.0, tuple(notes))
