"""Similar patterns lend each other what they know: how values compare, not how fast they are. No gain in the simulated
situations, so the product does without.

What is lent is each value's reward beside the mean of all, from the patterns nearest by `pattern.distance`. It is worth
as many observations as it has turned out to be: where it was compared with a pattern's own observations, the squares of
what it was wrong by are its variance, at first that of a stranger's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tarazu.tune.learning.levels import Known
from tarazu.tune.learning.ours import Tarazu, View
from tarazu.tune.learning.value import Value
from tarazu.tune.pattern import Pattern, distance

FARTHEST = 4.0
NEAREST = 6
"""Patterns that lend."""
STRANGER = 0.25
"""By what share a lent value is wrong before anything was compared."""
SURE = 0.03
"""No lent value is trusted closer than that."""
COMPARED = 4.0
"""Comparisons that the stranger's word counts as."""
ALONE = 256
"""Decisions after a change in which similar patterns, which may not have been seen since, are not asked."""
Lent = list[float | None]
"""By value: reward beside the mean; None: nobody knows."""


def nearest(pattern: Pattern, others: Iterable[Pattern]) -> list[tuple[Pattern, float]]:
    """(pattern, weight) of those that may lend."""
    far = ((distance(pattern, other), other) for other in others if other != pattern)
    near = sorted((pair for pair in far if pair[0] <= FARTHEST), key=lambda pair: pair[0])
    return [(other, 1.0 / (1.0 + away) ** 2) for away, other in near[:NEAREST]]


def shape(values: Sequence[Value]) -> Lent:
    """Of a pattern's own observations; all None where fewer than half of the values were seen."""
    seen = [value.mean for value in values if value.seen >= 0.5]
    if 2 * len(seen) < len(values):
        return [None] * len(values)
    middle = sum(seen) / len(seen)
    return [value.mean / middle if value.seen >= 0.5 else None for value in values]


def combined(shapes: Sequence[tuple[Lent, float]], arms: int) -> Lent:
    found: Lent = []
    for arm in range(arms):
        total = weights = 0.0
        for of, weight in shapes:
            share = of[arm]
            if share is not None:
                total += weight * share
                weights += weight
        found.append(total / weights if weights else None)
    return found


def level(values: Sequence[Value], lent: Lent) -> float:
    """Bytes a second by which what is lent fits what was seen; 0 where they have nothing in common."""
    total = weights = 0.0
    for value, share in zip(values, lent):
        if share and value.seen > 0:
            total += value.seen * value.mean / share
            weights += value.seen
    return total / weights if weights else 0.0


def wrong(values: Sequence[Value], lent: Lent, noise2: float) -> tuple[float, float]:
    """(sum of squared errors of what is lent, beyond what observations vary by; comparisons)."""
    of = level(values, lent)
    squares = many = 0.0
    if of > 0:
        for value, share in zip(values, lent):
            if share and value.seen >= 0.5:
                off = value.mean / (share * of) - 1.0
                squares += max(0.0, off * off - noise2 / value.seen)
                many += 1.0
    return (squares, many - 1.0) if many > 1 else (0.0, 0.0)


class LentView(View):
    """What is believed of a pattern, and what is lent to it."""

    __slots__ = ("lent", "lent_seen", "wrong")

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.lent: Lent | None = None
        self.lent_seen = 0.0
        self.wrong = (0.0, 0.0)

    def judge(self, arm: int) -> None:
        of = 0.0 if self.lent is None else level(self.sums, self.lent)
        if self.lent is not None and of > 0 and (lent := self.lent[arm]):
            spread = self.spread(arm)
            self.believe(arm, spread, self.lent_seen / spread, lent * of)
        else:
            super().judge(arm)


class Lending(Tarazu):
    """`tarazu` whose patterns lend: values that were not tried yet are expected to do as in similar patterns, as far as
    that has turned out to be right; what so cannot be good is not tried.
    """

    view = LentView

    def __init__(self, arms: int, seed: int = 0) -> None:
        super().__init__(arms, seed)
        self._views: dict[Pattern, LentView] = {}  # type: ignore[assignment]
        self._lenders: dict[Pattern, list[tuple[Pattern, float]]] = {}
        self._wrong = [COMPARED * STRANGER**2, COMPARED]

    def _restored(self) -> None:
        super()._restored()
        self._lenders.clear()
        self._wrong = [COMPARED * STRANGER**2, COMPARED]

    def _new(self, pattern: Pattern) -> Known:
        self._lenders.clear()
        return super()._new(pattern)

    def _forgotten(self, pattern: Pattern) -> None:
        self._lenders.clear()
        super()._forgotten(pattern)

    def _shown(self, pattern: Pattern, view: View | None) -> None:
        for one, sign in ((self._views.get(pattern), -1), (view, 1)):
            if isinstance(one, LentView):
                self._wrong[0] += sign * one.wrong[0]
                self._wrong[1] += sign * one.wrong[1]
        super()._shown(pattern, view)

    def _prepare(self, context: Known, view: View) -> None:
        assert isinstance(view, LentView)
        changed = context.changed and context.decisions - context.changed < ALONE
        if len(self._contexts) < 2 or changed:
            return
        view.lent = self._lent(context)
        view.wrong = wrong(view.sums, view.lent, view.noise2)
        seen = sum(value.seen for value in view.sums)
        tried = sum(value.seen > 0 for value in view.sums) or 1
        variance = max(SURE**2, self._variance(view.wrong)) * (1.0 + 1.0 / tried)
        view.lent_seen = view.noise2 / (variance + view.noise2 / max(seen, 0.1))

    def _variance(self, own: tuple[float, float]) -> float:
        """Of what is lent: as all patterns found it, and this one."""
        squares, many = max(self._wrong[0], 0.0), max(self._wrong[1], 1.0)
        return (COMPARED * squares / many + own[0]) / (COMPARED + own[1])

    def _lent(self, context: Known) -> Lent:
        lenders = self._lenders.get(context.pattern)
        if lenders is None:
            lenders = self._lenders[context.pattern] = nearest(context.pattern, self._contexts)
        shapes = [
            (shape(view.sums), weight)
            for pattern, weight in lenders
            if (view := self._views.get(pattern)) is not None
        ]
        return combined(shapes, self.arms)
