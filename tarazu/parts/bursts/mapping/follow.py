"""A mapping that follows the jobs that run: nodes that burst together in the last hour do so in the next one too.

Beside a mapping that stays (the base), few nodes have other routers, those for which it helped most in the last hour.
So rules stay few, and from hour to hour few of them change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import Protocol

import msgspec
import numpy as np

from tarazu.parts.bursts.mapping.history import TrafficHistory, learn
from tarazu.parts.bursts.mapping.judge import Judged, judge
from tarazu.parts.bursts.mapping.rules import Addresses, on_a_server, rules
from tarazu.parts.bursts.mapping.simple import moved
from tarazu.parts.bursts.mapping.together import QUIET, MappingOptions, concentration, dealt
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic
from tarazu.parts.routers.mapping_file import FOLLOW

PRICE = 0.1
"""Of a node that leaves the I/O node it has now, in parts of its mean share of the concentration."""
MOVES = 200
WORTH = 0.02
"""By this share the last hour has to be less concentrated, for another mapping than that in force."""


class Read(Protocol):
    def __call__(self, begin_s: float, end_s: float) -> Iterable[Traffic]: ...


class OnWindows(msgspec.Struct, frozen=True):
    """What mappings gave in some windows, each but the first window's end apart."""

    windows: int
    judged: Mapping[str, Judged]
    off: float
    """Nodes that `follow` had off the base, mean of the windows."""
    changed: float
    """Nodes that it gave another I/O node from one window that was looked at to the next, mean."""
    rules: int
    """The most that a server needed; 0 where NIDs are not known."""


def follow(
    history: TrafficHistory, machine: Machine, base: Numbers, now: Numbers, moves: int = MOVES
) -> Numbers:
    """(nodes,): the base with other I/O nodes for at most so many nodes; each I/O node serves as many as by the base.

    `now`: the mapping in force, whose changes are kept where they are as good.
    """
    if not history.intervals or moves < 2:
        return base.copy()
    proposed = dealt(
        history, machine, now, base, MappingOptions(shifted=0, moves=moves, quiet=QUIET, price=PRICE)
    )
    count = len(machine.io_nodes)
    numbers = [np.bincount(mapping[mapping >= 0], minlength=count) for mapping in (base, now)]
    allowed = moved(base, now) <= moves and (numbers[0] == numbers[1]).all()
    better = allowed and concentration(history, now, count) > (1 + WORTH) * concentration(
        history, proposed, count
    )
    # Changed rules cost something: what is in force goes on where it is about as good.
    return now.copy() if allowed and not better else proposed


def within(
    history: TrafficHistory,
    machine: Machine,
    base: Numbers,
    now: Numbers,
    known: Addresses,
    most_rules: int,
    moves: int = MOVES,
) -> Numbers:
    """As `follow`, with as many moves as so many rules on a server allow; the base where they allow none."""
    while moves >= 2:
        mapping = follow(history, machine, base, now, moves)
        if on_a_server(rules(mapping, known)) <= most_rules:
            return mapping
        moves //= 2
    return base.copy()


def judged(
    read: Read,
    machine: Machine,
    base: Numbers,
    others: Mapping[str, Numbers],
    period: tuple[float, float],
    window_s: float,
    most: int,
    change: Callable[[TrafficHistory, Numbers], Numbers],
    known: Addresses | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> OnWindows:
    """Beside `others`, on at most so many windows of (from, to), spread evenly; each is learned from the window before
    it, by `change` (history, the mapping before).
    """
    begin, end = period
    count = min(most, int((end - begin) / window_s) - 1)
    starts = begin + window_s * np.unique(
        np.linspace(1, (end - begin) / window_s - 1, max(count, 0)).astype(int)
    )
    now, sums, off, changed, most_rules = base, dict[str, list[float]](), 0, 0, 0
    for number, start in enumerate(starts.tolist()):
        new = change(learn(read(start - window_s, start), machine), now)
        off += moved(base, new)
        changed += moved(now, new) if number else 0
        now = new
        if known is not None:
            most_rules = max(most_rules, on_a_server(rules(new, known)))
        mappings = {**others, FOLLOW: new}
        for name, its in judge(mappings, read(start, start + window_s), machine).items():
            if not isnan(its.busiest_share):
                weighed = [its.intervals * value for value in msgspec.structs.astuple(its)[1:]]
                before = sums.get(name, [0.0] * (1 + len(weighed)))
                sums[name] = [a + b for a, b in zip(before, [its.intervals, *weighed], strict=True)]
        progress((number + 1) / len(starts))
    windows = len(starts)
    return OnWindows(
        windows,
        {name: Judged(int(n), *(value / n for value in rest)) for name, (n, *rest) in sums.items()},
        off / windows if windows else 0.0,
        changed / (windows - 1) if windows > 1 else 0.0,
        most_rules,
    )
