"""What a default layout is held to, whatever chose it: files get no OST by it that they should not, and did not before.

Only what differs is told: a layout that changes none of it is wanted for other reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tarazu.changes.change import Score
from tarazu.model import Component, Layout, Ost
from tarazu.ost_state import NEARLY_FULL, Verdict
from tarazu.prepare.choosing import DirectoryChoice

UNITS = {
    "dead": "dead or refusing OSTs that files there may get",
    "exclusions": "excluded OSTs that files there may get",
    "pools": "OSTs outside the pool of a component that files there may get",
    "space": "OSTs that are full or nearly so that files there may get",
}


def scores(
    base: Layout, choice: DirectoryChoice, targets: Sequence[Ost], pools: Mapping[str, Collection[int]]
) -> Iterator[Score]:
    """`base`: what files get there anyway; `targets`: of the file system; `pools`: members by name."""
    if choice.layout is None:
        return
    there = {ost.index for ost in targets}
    osts = choice.osts or ((),) * len(choice.layout.components)
    pairs = [*zip(base.components, choice.layout.components, osts, strict=True)]
    was = [_of(old, there, pools) for old, _, _ in pairs]
    will = [_of(new, there, pools, named, start=choice.method == "start") for _, new, named in pairs]
    out = sum(
        len(after - before) for (old, _, _), before, after in zip(pairs, was, will, strict=True) if old.pool
    )
    before, after = _amiss(set().union(*was), targets), _amiss(set().union(*will), targets)
    after["pools"] = out
    for name, unit in UNITS.items():
        if before.get(name, 0) != after[name]:
            yield Score(name, before.get(name, 0), after[name], unit)


def _of(
    component: Component,
    there: set[int],
    pools: Mapping[str, Collection[int]],
    named: Sequence[int] = (),
    *,
    start: bool = False,
) -> set[int]:
    """OSTs that files may get of it."""
    if component.pattern == "mdt":
        return set()
    if start and named:
        row = sorted(there, key=lambda index: (index < named[0], index))
        return set(row[: component.stripe_count])
    return set(named or pools.get(component.pool, there))


def _amiss(osts: set[int], targets: Sequence[Ost]) -> dict[str, int]:
    used = [ost for ost in targets if ost.index in osts]
    verdicts = [ost.verdict for ost in used]
    return {
        "dead": verdicts.count(Verdict.DEAD) + verdicts.count(Verdict.REFUSING),
        "exclusions": verdicts.count(Verdict.EXCLUDED),
        "space": sum(ost.verdict is Verdict.FULL or ost.fill >= NEARLY_FULL for ost in used),
    }
