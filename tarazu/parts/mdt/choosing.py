"""On which MDT the new subdirectories of a directory should be made, by time; changes nothing (paper, section 8.4).

The time of an MDT: creates on it in a second, times the seconds that one takes there. What counts is the busiest one's.
Beside a proposal stand what Lustre's own balance would give (`lmv.*.qos_*`, `max_inherit_rr`), and the bound: these
creates in any parts over all MDTs. A default moves no directory that is there: only creates in directories made below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tarazu.ost_state import NEARLY_FULL
from tarazu.parts.changes.model.change import Score
from tarazu.parts.mdt.lmv import ANY_MDT, UNKNOWN, DefaultLmv
from tarazu.parts.mdt.model import Mdt

LEAST_GAIN = 0.05
"""Share of the busiest MDT's time, as Lustre's own balance would have it, that has to go."""
LITTLE = 0.01
"""Share of the time with all changes, for which the smallest are left out."""
UNEVEN = 1.25
"""Time of the busiest MDT over the mean: below, there is nothing to mend."""
IDLE_S = 0.01
"""Of the busiest MDT: below, nothing is said of how even they are."""
USUAL_CREATE_S = 0.001
"""Of one create, where no MDT's time is known."""
SPREAD = DefaultLmv(max_inherit=1, max_inherit_rr=1)
"""Lustre's own round robin for one level, where it has none by itself."""
Shares = Mapping[int, float]
"""MDT → share, or creates in a second."""
_NONE: Shares = MappingProxyType({})


class MdtTimes(msgspec.Struct, frozen=True):
    """MDTs of a file system: how busy, how fast."""

    creates_per_s: dict[int, float]
    create_s: dict[int, float]
    usable: tuple[int, ...]
    """Where directories may be made; the others keep what they have."""
    space: dict[int, float]
    """Free bytes times free inodes: Lustre's own weight."""
    known: bool = True
    """False: no MDT's time of a create is known."""

    def busiest_s(self, more: Shares = _NONE, less: Shares = _NONE) -> float:
        """Seconds of work in a second on the busiest MDT: with so many creates more, and less."""
        return max(self.times(more, less), default=0.0)

    @property
    def unevenness(self) -> float:
        """Busiest over mean; 1 where nothing is created."""
        times = self.times()
        return max(times) * len(times) / sum(times) if sum(times) else 1.0

    def times(self, more: Shares = _NONE, less: Shares = _NONE) -> list[float]:
        """Of each, the busiest first: of two of whose busiest are alike the next one decides."""
        rates = self.moved(more, less).creates_per_s
        return sorted((rate * self.create_s[mdt] for mdt, rate in rates.items()), reverse=True)

    def moved(self, more: Shares, less: Shares) -> MdtTimes:
        rates = {
            mdt: max(0.0, rate - less.get(mdt, 0.0)) + more.get(mdt, 0.0)
            for mdt, rate in self.creates_per_s.items()
        }
        return msgspec.structs.replace(self, creates_per_s=rates)

    def bound_s(self, creates: Sequence[Shares]) -> float:
        """The least time of the busiest: all of these creates, which are there already, in any parts on usable MDTs."""
        total = sum(sum(each.values()) for each in creates)
        less: dict[int, float] = {}
        for each in creates:
            for mdt, rate in each.items():
                less[mdt] = less.get(mdt, 0.0) + rate
        rest = self.moved({}, less)
        stays = {m: rest.creates_per_s[m] * self.create_s[m] for m in rest.creates_per_s}
        level = least = max(stays.values(), default=0.0)
        room, work, seconds = 0.0, 0.0, sorted((stays[m], self.create_s[m]) for m in self.usable)
        for n, (stay, create_s) in enumerate(seconds):
            room, work = room + 1 / create_s, work + stay / create_s
            level = (total + work) / room
            if n + 1 == len(seconds) or level <= seconds[n + 1][0]:
                break
        return max(level, least) if seconds else least


def times_of(mdts: Sequence[Mdt], recorded: Sequence[Shares] = ()) -> MdtTimes:
    """`recorded`: creates in a second of each directory while its jobs run, by MDT: an MDT has at least these."""
    measured = sorted(m.create_s for m in mdts if m.create_s)
    middle = measured[len(measured) // 2] if measured else USUAL_CREATE_S
    own = {m.index: sum(each.get(m.index, 0.0) for each in recorded) for m in mdts}
    return MdtTimes(
        {m.index: max(m.creates_per_s, own[m.index]) for m in mdts},
        {m.index: m.create_s or middle / max(m.relative_speed or 1.0, 0.01) for m in mdts},
        tuple(m.index for m in mdts if m.usable and m.fill < NEARLY_FULL),
        {m.index: float(m.avail_bytes) * m.files_free for m in mdts if m.usable},
        bool(measured),
    )


class MdtDirectory(msgspec.Struct, frozen=True):
    """A directory, and what is known of it."""

    path: str
    mdt: int
    """That it lies on."""
    depth: int
    """Below the file system's root, which has 0."""
    own: str
    """Its own default, as words of `lfs setdirstripe -D`; empty: none."""
    default: DefaultLmv | None
    """What holds for its new subdirectories: its own, or the root's; None: they stay on its MDT."""
    moving: dict[int, float] = {}
    """MDT → creates in a second, in directories that were made below it: as its recorded jobs ran."""
    staying_per_s: float = 0.0
    """Creates in itself, and in directories that were there: no default moves them."""


def lustre_shares(of: MdtDirectory, times: MdtTimes, threshold: float) -> dict[int, float]:
    """Of its new subdirectories, by Lustre's own choice (`lmv_locate_tgt_create`): MDT → share. `threshold`:
    `lmv.*.qos_threshold_rr`, 0-1.
    """
    default, space = of.default, times.space
    if default is None or not space:
        return {of.mdt: 1.0}
    if default.mdt != ANY_MDT:
        return {default.mdt: 1.0}
    round_robin = default.max_inherit_rr != 0
    if max(space.values()) * (1 - threshold) <= min(space.values()):
        return dict.fromkeys(space, 1 / len(space)) if round_robin else {of.mdt: 1.0}
    mean = sum(space.values()) / len(space)
    if not round_robin and space.get(of.mdt, 0.0) >= mean * 16 / (of.depth + 10):
        return {of.mdt: 1.0}
    return {mdt: weight / sum(space.values()) for mdt, weight in space.items()}


class MdtChoice(msgspec.Struct, frozen=True):
    """What to do with one directory."""

    directory: str
    words: str
    """Of `lfs setdirstripe -D`; empty: nothing, `why`."""
    why: str
    moves_per_s: float = 0.0
    """Recorded creates in a second that would be made elsewhere."""
    before_s: float = 0.0
    """Busiest MDT's seconds of work in a second, now; so are the next three."""
    lustre_s: float = 0.0
    """As Lustre's own choice for all new subdirectories would have it."""
    after_s: float = 0.0
    """With all that is chosen."""
    bound_s: float = 0.0
    adds: bool = False
    """They come to what is there now: a new directory."""

    @property
    def scores(self) -> tuple[Score, ...]:
        unit = "seconds of creates in a second on the busiest MDT"
        before = self.lustre_s if self.adds else min(self.before_s, self.lustre_s)
        return (Score("time", before, self.after_s, unit),)


class _Way(NamedTuple):
    words: str
    shares: Shares


class _Plan:
    """Of some directories: each new subdirectory by Lustre's own choice, or another way."""

    def __init__(self, times: MdtTimes, of: Sequence[MdtDirectory], threshold: float) -> None:
        self.of = sorted(of, key=lambda d: (-sum(d.moving.values()), d.path))
        self.own = {d.path: _Way("", lustre_shares(d, times, threshold)) for d in self.of}
        self.rest = times
        for each in self.of:
            self.rest = self.rest.moved(_NONE, each.moving)
        self.chosen = dict(self.own)
        self._sums: dict[int, float] = {}
        """Creates in a second on each MDT by what is chosen."""
        for each in self.of:
            self._add(each, self.own[each.path])

    def times(self, of: MdtDirectory | None = None, way: _Way | None = None) -> list[float]:
        """The busiest first: with what is chosen, or this way of one directory instead."""
        if of is None or way is None:
            return self.rest.times(self._sums)
        rate = sum(of.moving.values())
        more = dict(self._sums)
        for shares, sign in ((self.chosen[of.path].shares, -rate), (way.shares, rate)):
            for mdt, share in shares.items():
                more[mdt] = more.get(mdt, 0.0) + sign * share
        return self.rest.times(more)

    def choose(self) -> None:
        """The largest first, each where the busiest is least busy then; what gives little is left to Lustre."""
        self._sums = {}
        usable = self.rest.usable
        named = [_Way(str(DefaultLmv(mdt)), {mdt: 1.0}) for mdt in usable]
        spread = _Way(str(SPREAD), dict.fromkeys(usable, 1 / len(usable)))
        for each in self.of:
            # Where it has its own, its subdirectories would not get a copy of what they get one of now.
            ways = [self.own[each.path], *named, *([] if each.own else [spread])]
            self.chosen[each.path] = _Way("", {})
            self._take(each, min(ways, key=lambda way: self.times(each, way)))
        most_s = self.times()[0] * (1 + LITTLE)
        for each in reversed(self.of):
            own = self.own[each.path]
            if self.times(each, own)[0] <= most_s:
                self._take(each, own)

    def _take(self, of: MdtDirectory, way: _Way) -> None:
        self._add(of, self.chosen[of.path], -1.0)
        self._add(of, way)
        self.chosen[of.path] = way

    def _add(self, of: MdtDirectory, way: _Way, sign: float = 1.0) -> None:
        rate = sign * sum(of.moving.values())
        for mdt, share in way.shares.items():
            self._sums[mdt] = self._sums.get(mdt, 0.0) + rate * share


def choose(directories: Sequence[MdtDirectory], mdts: Sequence[Mdt], threshold: float) -> list[MdtChoice]:
    """One for each, in that order; together they are a plan."""
    times = times_of(mdts, [each.moving for each in directories])
    why = {each.path: _why_not(each, times) for each in directories}
    open_ = [each for each in directories if not why[each.path]]
    plan = _Plan(times, open_, threshold)
    before, lustre, bound = times.busiest_s(), plan.times()[0], times.bound_s([d.moving for d in open_])
    if open_:
        plan.choose()
    after = plan.times()[0]
    helps = after <= (1 - LEAST_GAIN) * min(before, lustre)
    choices = []
    for each in directories:
        if why[each.path]:
            choices.append(MdtChoice(each.path, "", why[each.path], before_s=before, bound_s=bound))
            continue
        own, chosen, rate = plan.own[each.path], plan.chosen[each.path], sum(each.moving.values())
        if helps and chosen.words:
            text = f"{rate:.3g} creates a second go {_by(chosen.shares)} instead of {_by(own.shares)}"
            choices.append(MdtChoice(each.path, chosen.words, text, rate, before, lustre, after, bound))
            continue
        as_good = f"Lustre's own choice is as good: {_by(own.shares)}"
        text = as_good if helps or lustre <= before else "no MDT takes it with less time of the busiest"
        choices.append(MdtChoice(each.path, "", text, 0.0, before, lustre, after, bound))
    return choices


def _why_not(of: MdtDirectory, times: MdtTimes) -> str:
    """Why nothing is chosen; empty: something may be."""
    if why := _fixed(of):
        return why
    if len(times.usable) < 2:
        return f"{len(times.usable)} of {len(times.creates_per_s)} MDTs can take directories"
    if not sum(of.moving.values()):
        stay = f"; {of.staying_per_s:.3g} a second stay where they are" if of.staying_per_s else ""
        return f"no recorded creates in directories made below it{stay}"
    return ""


def _fixed(of: MdtDirectory) -> str:
    """Why nothing may be changed there; empty: it may."""
    if of.own == UNKNOWN:
        return f"has {UNKNOWN}, which could not be restored"
    if of.own and of.default and of.default.mdt != ANY_MDT:
        return f"somebody has chosen its MDT: {of.own}"
    if of.default and of.default.stripe_count not in (0, 1):
        return f"its new subdirectories are striped over MDTs: -c {of.default.stripe_count}"
    return ""


def choose_new(of: MdtDirectory, mdts: Sequence[Mdt], threshold: float, creates_per_s: float) -> MdtChoice:
    """For a directory that is not there: `of` is the one that it will be made in; its subdirectories stay with it."""
    times = times_of(mdts)
    before = times.busiest_s()
    if len(times.usable) < 2:
        why = f"{len(times.usable)} of {len(times.creates_per_s)} MDTs can take directories"
        return MdtChoice("", "", why, before_s=before)
    own = lustre_shares(of, times, threshold)
    lustre = sum(share * times.busiest_s({mdt: creates_per_s}) for mdt, share in own.items())
    (after, *_), _, mdt = min(
        (times.times({m: creates_per_s}), times.creates_per_s[m] * times.create_s[m], m) for m in times.usable
    )
    bound = times.moved({times.usable[0]: creates_per_s}, {}).bound_s([{times.usable[0]: creates_per_s}])
    figures = (creates_per_s, before, lustre, after, bound, True)
    if own == {mdt: 1.0}:
        return MdtChoice("", "", f"Lustre's own choice is the same: MDT {mdt}", *figures)
    if creates_per_s and after > (1 - LEAST_GAIN) * lustre:
        return MdtChoice("", "", f"Lustre's own choice is as good: {_by(own)}", *figures)
    why = f"{creates_per_s:.3g} creates a second" if creates_per_s else "how much is created is not known: it"
    return MdtChoice("", f"-i {mdt}", f"{why} on the least busy MDT instead of {_by(own)}", *figures)


def _by(shares: Shares) -> str:
    """`to MDT 1`; `over MDTs 0, 1, 2`."""
    mdts = sorted(mdt for mdt, share in shares.items() if share)
    return f"to MDT {mdts[0]}" if len(mdts) == 1 else f"over MDTs {', '.join(map(str, mdts))}"
