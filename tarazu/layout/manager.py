"""The configuration manager: which layout an expected file gets (paper, section 5.5.2; design, "Layouts").

In this order: a matching rule of the PFL file, the site's composite default as a template, a plain layout.
What the site's default holds on the MDT (DoM), in pools or as self-extending components is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tarazu.errors import LayoutError
from tarazu.layout.pfl import PflRule
from tarazu.layout.rules import ALIGNMENT_BYTES, MAX_STRIPE_COUNT, MAX_STRIPE_SIZE_BYTES, check
from tarazu.model import EOF, Component, Forecast, Layout
from tarazu.units import GIB, MIB, exact_bytes

PAPER_STRIPE_COUNT = 8
MAX_AUTO_STRIPE_COUNT = 160
"""What an MDT without large extended attributes can hold."""
MIN_STRIPE_SIZE_BYTES = 1 * MIB
_POWERS = tuple(MIB << shift for shift in range(6, -1, -1))
EVEN = 1.01
ALL, LEAST_OF_ALL = 0xFFFF, 0xFFE0
"""Stripe counts of default layouts from LOV_ALL_STRIPES_WIDE to LOV_ALL_STRIPES: every OST, also several times."""
FILE_SYSTEMS_OWN = Component(0, EOF, 4 * MIB, 1)
"""What a file gets where no directory above it has a default layout."""
ROUNDS = 8
"""A file of the forecast size goes at least this many times round its stripes, so that a forecast that is
wrong by 10x still uses all of them evenly."""


@dataclass(frozen=True)
class Targets:
    """How many OSTs can be used: of the whole file system and of each pool."""

    usable: int
    pools: Mapping[str, int] = field(default_factory=dict)

    def count(self, pool: str) -> int:
        return self.pools.get(pool, 0) if pool else self.usable


@dataclass(frozen=True)
class LayoutPolicy:
    """The site's choices (`[layout]` of the configuration)."""

    stripe_count: str = "auto"
    striping: str = "auto"
    rules: tuple[PflRule, ...] = ()
    min_size_bytes: int = 64 * MIB
    shared_stripe_bytes: int = 256 * MIB
    private_stripe_bytes: int = 1 * GIB


class Choice(NamedTuple):
    """What a file gets."""

    layout: Layout | None
    """None: it is left to Lustre."""
    left_because: str = ""
    """Why it is."""


def left(reason: str) -> Choice:
    return Choice(None, reason)


def raid0_stripe_size(length_bytes: int, stripe_count: int, end_bytes: int = EOF) -> int:
    """The largest power of two in [1, 64] MiB with `ROUNDS` rounds over `length_bytes` and even stripes.

    Even: the fullest stripe holds at most `EVEN` times the mean at that length; where no size reaches it, the
    most even one. Halved further, down to 64 KiB, until the component's end is a multiple of it.
    """
    sizes = [s for s in _POWERS if s * ROUNDS * stripe_count <= length_bytes] or [MIN_STRIPE_SIZE_BYTES]
    even = (s for s in sizes if unevenness(s, length_bytes, stripe_count) <= EVEN)
    size = next(even, None) or min(sizes, key=lambda s: unevenness(s, length_bytes, stripe_count))
    while end_bytes != EOF and end_bytes % size and size > ALIGNMENT_BYTES:
        size //= 2
    return size


def unevenness(stripe_size_bytes: int, length_bytes: int, stripe_count: int) -> float:
    """Bytes of the fullest stripe over the mean, for `length_bytes` from a stripe boundary on."""
    rounds, rest = divmod(length_bytes, stripe_size_bytes * stripe_count)
    fullest = rounds * stripe_size_bytes + min(rest, stripe_size_bytes)
    return fullest * stripe_count / length_bytes if length_bytes else 1.0


def contiguous_stripe_size(size_bytes: int, stripe_count: int) -> int:
    """One stripe per object (paper, equations 2, 3): the least multiple of 128 KiB that holds it."""
    unit = ALIGNMENT_BYTES * 2
    return unit * max(1, -(-size_bytes // (unit * stripe_count)))


class ConfigurationManager:
    """Turns forecasts into layouts. `site_default` is the layout that a new file would get from Lustre."""

    def __init__(self, policy: LayoutPolicy, targets: Targets, site_default: Layout | None = None) -> None:
        self.policy = policy
        self.targets = targets
        self.site_default = site_default

    def choose(self, forecasts: Sequence[Forecast]) -> tuple[Choice, ...]:
        """What each file gets. One that is better left to Lustre, or whose layout the rules refuse, says why."""
        many = sum(f.writers <= 1 for f in forecasts) >= 4 * max(1, self.targets.usable)
        return tuple(self._accepted(f, many) for f in forecasts)

    def _accepted(self, forecast: Forecast, many_files: bool) -> Choice:
        least = max(1, self.policy.min_size_bytes)
        if forecast.size_bytes < least:
            return left(f"smaller than layout.min_size {exact_bytes(least)}")
        rule = next((r for r in self.policy.rules if r.matches(forecast.key)), None)
        try:
            if rule:
                choice = self._from_rule(rule, forecast)
            elif self.site_default and self.site_default.composite:
                choice = self._from_template(self.site_default, forecast)
            else:
                choice = self._plain(forecast, many_files)
            if choice.layout:
                check(choice.layout, f"layout of rule [{rule.name}]" if rule else "the default layout")
        except LayoutError as error:
            # A default layout that these rules do not know must not cost the other files their plan.
            return left(str(error))
        if choice.layout and not any(
            c.stripe_count for c in choice.layout.components[: choice.layout.covered(forecast.size_bytes)]
        ):
            return left("all of it lies on the MDT (DoM)")
        return choice

    def _from_rule(self, rule: PflRule, forecast: Forecast) -> Choice:
        on_mdt = [c for c in self._default_components() if c.pattern == "mdt"]
        mdt_end = on_mdt[-1].end_bytes if on_mdt else 0
        components = list(on_mdt)
        for extent in rule.extents:
            start = max(extent.start_bytes, mdt_end)
            if start >= extent.end_bytes:
                continue
            pool = rule.pool or self._default_pool(start)
            count = min(extent.stripe_count, self.targets.count(pool))
            if count < 1:
                return no_ost(pool)
            components.append(self._component(start, extent.end_bytes, count, pool, forecast.size_bytes))
        return Choice(Layout(tuple(components), composite=True))

    def _from_template(self, template: Layout, forecast: Forecast) -> Choice:
        components = []
        for component in template.components:
            if component.pattern == "mdt":
                components.append(with_size(component, component.end_bytes))
                continue
            if component.pattern not in ("raid0", "overstriped"):
                return left(f"the default layout has a component of pattern {component.pattern}")
            count = self._wanted_by(component)
            if count < 1:
                return no_ost(component.pool)
            start, end = component.start_bytes, component.end_bytes
            chosen = self._component(start, end, count, component.pool, forecast.size_bytes)
            size = chosen.stripe_size_bytes
            while component.extension_bytes % size and size > ALIGNMENT_BYTES:
                size //= 2
            sized = with_size(component, size)
            components.append(msgspec.structs.replace(sized, stripe_count=count))
        return Choice(Layout(tuple(components), composite=True))

    def _wanted_by(self, component: Component) -> int:
        """Stripes that Lustre gives a component of a default layout; 0 when no OST is usable."""
        available = self.targets.count(component.pool)
        return min(MAX_STRIPE_COUNT, stripes_of(component, available)) if available else 0

    def _plain(self, forecast: Forecast, many_files: bool) -> Choice:
        default = self._default_components()[0] if self._default_components() else FILE_SYSTEMS_OWN
        pool, pattern = default.pool, default.pattern
        if pattern not in ("raid0", "overstriped"):
            return left(f"the default layout is of pattern {pattern}")
        available = self.targets.count(pool)
        if available < 1:
            return no_ost(pool)
        count = min(self._stripe_count(forecast, many_files, available, default), MAX_STRIPE_COUNT)
        if pattern != "overstriped":
            count = min(count, available)
        shared = forecast.writers > 1
        contiguous = self.policy.striping == "contiguous" or (
            self.policy.striping == "auto" and shared and forecast.contiguous
        )
        size = contiguous_stripe_size(forecast.size_bytes, count)
        if not contiguous or size > MAX_STRIPE_SIZE_BYTES:
            size = raid0_stripe_size(forecast.size_bytes, count)
        return Choice(Layout((Component(0, EOF, size, count, pattern, pool),)))

    def _stripe_count(
        self, forecast: Forecast, many_files: bool, available: int, default: Component
    ) -> int:
        setting = self.policy.stripe_count
        if setting == "paper":
            return PAPER_STRIPE_COUNT
        if setting == "site":
            return stripes_of(default, available)
        if setting != "auto":
            return int(setting)
        shared = forecast.writers > 1
        unit = self.policy.shared_stripe_bytes if shared else self.policy.private_stripe_bytes
        return 1 if many_files and not shared else min(MAX_AUTO_STRIPE_COUNT, -(-forecast.size_bytes // unit))

    def _component(self, start: int, end: int, count: int, pool: str, size_bytes: int) -> Component:
        reach = end if end != EOF else max(size_bytes, 2 * start, MIN_STRIPE_SIZE_BYTES)
        length = min(reach, size_bytes) - start if size_bytes > start else reach - start
        return Component(start, end, raid0_stripe_size(length, count, end), count, pool=pool)

    def _default_components(self) -> tuple[Component, ...]:
        return self.site_default.components if self.site_default else ()

    def _default_pool(self, offset: int) -> str:
        inside = [c.pool for c in self._default_components() if c.start_bytes <= offset < c.end_bytes]
        return inside[0] if inside else ""


def no_ost(pool: str) -> Choice:
    return left(f"no usable OST in pool {pool}" if pool else "no usable OST")


def stripes_of(component: Component, available: int) -> int:
    """Stripes that a component of a default layout comes to on `available` OSTs.

    −1 is every OST; −N of an overstriped one N objects on each (`lod_get_stripe_count_plain`).
    """
    count = component.stripe_count
    if count == -1 or count >= LEAST_OF_ALL:
        per_ost = 1 if count == -1 else ALL - count + 1
        return available * (per_ost if component.pattern == "overstriped" else 1)
    return max(1, count) if component.pattern == "overstriped" else max(1, min(count, available))


def with_size(component: Component, stripe_size_bytes: int) -> Component:
    """A default layout may leave the stripe size open (0, the file system's own): fill it in."""
    if component.stripe_size_bytes:
        return component
    return msgspec.structs.replace(component, stripe_size_bytes=stripe_size_bytes)


def explicit_components(layout: Layout, size_bytes: int) -> tuple[bool, ...]:
    """Which components get an explicit OST list: reached by the forecast, on OSTs, not self-extending."""
    return tuple(
        bool(c.stripe_count) and not c.extension_bytes and number < layout.covered(size_bytes)
        for number, c in enumerate(layout.components)
    )


def asked_osts(layout: Layout, size_bytes: int, osts: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """What is asked of Lustre for the OSTs that the allocator chose: a list, or where the component may have
    none, its first OST as a start hint.
    """
    explicit = explicit_components(layout, size_bytes)
    return tuple(tuple(of) if listed else tuple(of[:1]) for of, listed in zip(osts, explicit, strict=True))
