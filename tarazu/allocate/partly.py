"""What to place when not all of a request fits: the files that gain most, each other one left with its reason.

A file's gain is what placing it balances: the bytes that its forecast puts on OSTs. Left to Lustre, they pile up on
what its allocator happens to choose; so the largest files come first. Of two equal ones the one with the
larger objects does: such an object tilts its OST more, and finds room less easily later; then the first one.

Files of one layout whose sizes differ by a few percent are one kind, and count as large as the largest of them: what is
looked for is how many of a kind still fit, not whether each does. Only where a kind does not fit as a whole is it
halved. The room that is divided is the policies' own: available space less promises and reserve, on distinct OSTs of
the component's pool. What was chosen is then placed by the policy, all at once. Should it still find no way (policies
to compare with count space differently), half as many files are tried, then more or fewer, a few times only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from time import perf_counter

import msgspec
import numpy as np

from tarazu.allocate.eligible import candidates, in_pool, room_bytes, usable_osts
from tarazu.allocate.policy import Policy
from tarazu.allocate.problem import Array, RequestedComponent, pieces_of
from tarazu.config import Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import Allocation, CreateRequest, FilePlacement, Left, Ost, SystemView
from tarazu.units import human_bytes

ALIKE = 1 / 16
"""Sizes within this power of two count as one kind, where there are more than MOST_KINDS."""
MOST_KINDS = 256
MOST_LOOKS = 4_000
"""At how many kinds and halves of kinds it is looked; what is left over then counts as not fitting."""
MOST_TRIES = 5
"""More calls of a policy that refuses what should fit."""
NOWHERE = FilePlacement(())

Refusal = InfeasibleRequest | InsufficientResources


def place(
    policy: Policy,
    view: SystemView,
    requests: Sequence[CreateRequest],
    of_wave: Sequence[int] = (),
    *,
    weights: Weights | None = None,
    left: Mapping[int, Left] | None = None,
) -> Allocation:
    """`policy.allocate`, but what fits is placed when not all does: `Allocation.left` says of each other file why.

    The requests may be those of several steps: indices in `left` are those in `requests`, and a step of which all
    files are left has got nothing. `left`: files that are not to be placed anyway, as beyond their user's share.

    Raises InfeasibleRequest when no file can ever be placed, InsufficientResources when none can be now.
    """
    start = perf_counter()
    why = dict(left or {})
    kept = [i for i in range(len(requests)) if i not in why]

    def attempt(chosen: Sequence[int]) -> Allocation:
        waves = [of_wave[i] for i in chosen] if len(of_wave) else ()
        return policy.allocate(view, [requests[i] for i in chosen], waves)

    try:
        if not why:
            return policy.allocate(view, requests, of_wave)
        allocation = attempt(kept) if kept else None
    except (InfeasibleRequest, InsufficientResources) as refused:
        osts = usable_osts(view)
        if not osts:
            raise
        fitting, reasons = _Fitting(view, osts, weights or Weights()).choose(requests, kept)
        why |= reasons
        allocation, kept = _first_that_fits(attempt, fitting, why)
        if allocation is None:
            raise _nothing(why, refused) from None
    if allocation is None:
        raise InsufficientResources(next(iter(why.values())).why)
    why |= {kept[i]: reason for i, reason in allocation.left.items()}
    files = [NOWHERE] * len(requests)
    for i, placed in zip(kept, allocation.files, strict=True):
        files[i] = placed
    return msgspec.structs.replace(
        allocation, files=tuple(files), left=dict(sorted(why.items())), elapsed_s=perf_counter() - start
    )


def beyond(requests: Sequence[CreateRequest], most_bytes: float) -> list[int]:
    """Which files have to be left so that the rest is of `most_bytes` at most: those that gain least, and those
    that are too large by themselves.
    """
    left = []
    for kind in _kinds(requests, range(len(requests))):
        size = requests[kind.files[0]].size_bytes
        fit = len(kind.files) if size <= 0 else max(0, int(most_bytes // size))
        most_bytes -= size * min(fit, len(kind.files))
        left += kind.files[fit:]
    return sorted(left)


@dataclass(slots=True)
class _Kind:
    """Files alike in layout and size, but for small differences of the latter."""

    files: list[int]
    pieces: list[RequestedComponent]
    """One for each component that the forecast reaches, as large as in the largest file."""
    gain: int

    @property
    def key(self) -> tuple[float, ...]:
        """Files with the least key come first."""
        return (-self.gain, sum(len(p.weights) for p in self.pieces), self.files[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.pieces[0].layout, *(p.position for p in self.pieces)) if self.pieces else ()


def _kinds(requests: Sequence[CreateRequest], kept: Iterable[int]) -> list[_Kind]:
    """By gain. Files without any object on an OST (only on the MDT) come last, and need nothing."""
    numbers = list(kept)
    by_request: dict[int, list[RequestedComponent]] = {}
    for piece in pieces_of([requests[i] for i in numbers]):
        by_request.setdefault(piece.requests[0], []).append(piece)
    kinds = [
        _Kind([numbers[i] for i in pieces[0].requests], pieces, sum(sum(p.weights) for p in pieces))
        for pieces in by_request.values()
    ]
    kinds.sort(key=lambda kind: kind.key)
    known = {i for kind in kinds for i in kind.files}
    kinds += [_Kind([i], [], 0) for i in numbers if i not in known]
    return kinds


def _alike(kinds: list[_Kind]) -> list[list[_Kind]]:
    """Kinds by gain, those of one layout and about one size together where there are many."""
    if len(kinds) <= MOST_KINDS:
        return [[kind] for kind in kinds]
    together: dict[tuple[float, ...], list[_Kind]] = {}
    for kind in kinds:
        together.setdefault((*kind.shape, log2(max(1, kind.gain)) // ALIKE), []).append(kind)
    return list(together.values())


class _Fitting:
    """Which files fit, one kind after the other, and why the others do not."""

    def __init__(self, view: SystemView, osts: Sequence[Ost], weights: Weights) -> None:
        self._view, self._osts = view, osts
        self._room = np.array([room_bytes(o, weights) for o in osts], float)
        self._inside: dict[str, Array] = {}
        self._totals: dict[str, Array] = {}
        self._refusals: dict[tuple[str, str, int, int], Left | None] = {}
        self._short: dict[str, list[_Kind]] = {}
        """Pool → what it has no room for."""
        self._looks = 0

    def choose(
        self, requests: Sequence[CreateRequest], kept: Sequence[int]
    ) -> tuple[list[int], dict[int, Left]]:
        """(files that fit, those that gain most first; of each other one why it is left)."""
        left: dict[int, Left] = {}
        able = []
        # The smallest first: the reason that many share then tells what already the smallest lacks.
        for kind in reversed(_kinds(requests, kept)):
            why = next((why for p in kind.pieces if (why := self._refusal(p))), None)
            if why:
                left.update(dict.fromkeys(kind.files, why))
            else:
                able.append(kind)
        chosen: list[int] = []
        for kinds in _alike(able[::-1]):
            chosen += self._take(kinds)
        for pool, short in self._short.items():
            why = Left(self._why_short(pool, short))
            left.update((i, why) for kind in short for i in kind.files)
        return chosen, left

    def _refusal(self, piece: RequestedComponent) -> Left | None:
        """Why no OSTs can serve this component at all, now or ever."""
        component, largest = piece.component, max(piece.weights)
        if component.pool not in self._totals:
            inside = in_pool(self._view.osts, component.pool)
            self._totals[component.pool] = np.sort(np.array([o.total_bytes for o in inside], np.int64))
        small = int(np.searchsorted(self._totals[component.pool], largest))
        key = (component.pool, component.pattern, component.stripe_count, small)
        if key not in self._refusals:
            self._refusals[key] = None
            try:
                candidates(self._view, component, largest)
            except InfeasibleRequest as error:
                self._refusals[key] = Left(str(error), never=True)
            except InsufficientResources as error:
                self._refusals[key] = Left(str(error))
        return self._refusals[key]

    def _take(self, kinds: list[_Kind]) -> list[int]:
        """As many of these files as fit, the largest first; they take their room."""
        files = [i for kind in kinds for i in kind.files]
        self._looks += 1
        if (room := self._with(kinds, len(files))) is not None:
            self._room = room
            return files
        if len(kinds) > 1 and self._looks < MOST_LOOKS and self._with(kinds[-1:], 1) is not None:
            middle = len(kinds) // 2
            return self._take(kinds[:middle]) + self._take(kinds[middle:])
        fit, too_many = 0, len(files)
        while too_many - fit > 1:
            count = (fit + too_many) // 2
            if (less := self._with(kinds, count)) is None:
                too_many = count
            else:
                fit, room = count, less
        if room is not None:
            self._room = room
        self._leave(kinds, fit)
        return files[:fit]

    def _leave(self, kinds: Sequence[_Kind], fit: int) -> None:
        short = self._short.setdefault(self._blamed(kinds[-1]), [])
        for kind in kinds:
            if rest := kind.files[fit:]:
                short.append(_Kind(rest, kind.pieces, kind.gain))
            fit = max(0, fit - len(kind.files))

    def _with(self, kinds: Sequence[_Kind], count: int) -> Array | None:
        """(n,) the room that is left with `count` files as large as the largest of these; None where it is too small.

        Their objects are dealt so that the room left is as even as possible.
        """
        room = self._room
        for pieces in zip(*(kind.pieces for kind in kinds), strict=True):
            largest = float(max(1, *(max(p.weights) for p in pieces)))
            inside = self._of_pool(pieces[0].component.pool)
            stripes, width = len(pieces[0].weights), int(np.count_nonzero(inside))
            for start in range(0, stripes, width):
                counts = _even(room, inside, largest, count, min(width, stripes - start))
                if counts is None:
                    return None
                room = room - counts * largest
        return room

    def _blamed(self, kind: _Kind) -> str:
        """The pool that has no room for one of these; "" where there are several, or all OSTs."""
        for piece in kind.pieces:
            if self._with([_Kind(kind.files, [piece], 0)], 1) is None:
                return piece.component.pool
        pools = {p.component.pool for p in kind.pieces}
        return pools.pop() if len(pools) == 1 else ""

    def _why_short(self, pool: str, short: Sequence[_Kind]) -> str:
        inside = self._of_pool(pool)
        pieces = [p for kind in short for p in kind.pieces if p.component.pool == pool or not pool]
        least = min(max(p.weights) for p in pieces)
        files = sum(len(kind.files) for kind in short)
        size = sum(len(kind.files) * kind.gain for kind in short)
        fitting = np.count_nonzero(self._room[inside] >= least)
        where = f"pool {pool!r} of {self._view.fs_name}" if pool else f"file system {self._view.fs_name}"
        return (
            f"{where}: expected room for {files} more files of {human_bytes(size)}, "
            f"found {human_bytes(self._room[inside].sum())} after reserve and promises, "
            f"and room for an object of {human_bytes(least)} on {fitting} OSTs"
        )

    def _of_pool(self, pool: str) -> Array:
        if pool not in self._inside:
            self._inside[pool] = np.array([not pool or pool in o.pools for o in self._osts])
        return self._inside[pool]


def _even(room: Array, inside: Array, largest: float, files: int, stripes: int) -> Array | None:
    """(n,) objects per OST for `files` files of `stripes` objects of `largest` bytes each, on distinct OSTs of those
    `inside`, so that what is left of `room` is as even as possible; None where they do not fit.

    An OST takes at most one object of each file; then any such counts can be dealt to the files.
    """
    need = files * stripes
    most = np.where(inside, np.floor(room / largest + 1e-9).clip(0, files), 0.0)
    if most.sum() < need or np.count_nonzero(most) < stripes:
        return None

    def above(level: float) -> Array:
        counts: Array = np.floor((room - level) / largest).clip(0, most)
        return counts

    low, high = 0.0, float(room[inside].max()) + largest
    if above(low).sum() < need:
        return most
    while high - low > largest / 2:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle).sum() >= need else (low, middle)
    counts, fewer = above(low), above(high)
    spare = int(counts.sum()) - need
    changed = np.flatnonzero(counts > fewer)
    fullest = changed[np.argsort((room - counts * largest)[changed], kind="stable")]
    counts[fullest[:spare]] -= 1
    return counts


def _first_that_fits(
    attempt: Callable[[Sequence[int]], Allocation], order: list[int], left: dict[int, Left]
) -> tuple[Allocation | None, list[int]]:
    """The policy's answer for these files (or for as many as it places, from the first on), and which they are, in
    the order of the requests. The others go to `left`.
    """
    best: Allocation | None = None
    placed, refused, why = 0, len(order) + 1, ""
    count, tries = len(order), 0
    while count > placed and (best is None or tries <= MOST_TRIES):
        try:
            best = attempt(sorted(order[:count]))
            placed = count
        except (InfeasibleRequest, InsufficientResources) as error:
            refused, why = count, str(error)
        count, tries = (placed + refused) // 2, tries + 1
    left.update(dict.fromkeys(order[placed:], Left(why)))
    return best, sorted(order[:placed])


def _nothing(left: Mapping[int, Left], refused: Refusal) -> Refusal:
    """What to raise when no file is placed: `refused`, what the policy said of all together, where it says it."""
    never = all(why.never for why in left.values())
    if never == isinstance(refused, InfeasibleRequest):
        return refused
    kind = InfeasibleRequest if never else InsufficientResources
    return kind(next(why.why for why in left.values() if why.never == never))
