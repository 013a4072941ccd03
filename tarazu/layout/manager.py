"""The configuration manager: which layout an expected file gets (paper, section 5.5.2).

In this order: a matching rule of the PFL file, the site's composite default as a template, a plain layout.
What the site's default holds on the MDT (DoM), in pools or as self-extending components is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tarazu import left, lustre
from tarazu.config import LayoutSettings
from tarazu.errors import LayoutError
from tarazu.layout import stripe_count
from tarazu.layout.pfl import PflRule
from tarazu.layout.rules import check
from tarazu.layout.stripe_count import AlikeFiles, Striping, striping
from tarazu.layout.stripe_size import MIN_STRIPE_SIZE_BYTES, contiguous_extent_size, raid0_stripe_size
from tarazu.model import Component, Forecast, Layout
from tarazu.units import MIB, exact_bytes

PAPER_STRIPE_COUNT = 8
LEAST_OBJECT_BYTES = 8 * MIB
"""By a bandwidth curve no more stripes than give objects of this size: small files are not what it is about."""
FILE_SYSTEMS_OWN = Component(0, lustre.EOF, 4 * MIB, 1)
"""What a file gets where no directory above it has a default layout."""


@dataclass(frozen=True)
class UsableOsts:
    """How many OSTs can be used: of the whole file system ("") and of each pool."""

    usable: int
    pools: Mapping[str, int] = field(default_factory=dict)
    unfit: Mapping[str, int] = field(default_factory=dict)
    """Of these, how many cannot take an even share: slow, degraded, or short of space."""
    spills: Mapping[str, str] = field(default_factory=dict)
    """As `SystemView.spills`."""

    def count(self, pool: str) -> int:
        return self.pools.get(pool, 0) if pool else self.usable

    def fit(self, pool: str) -> int:
        """How many can take an even share; all where none could."""
        return self.count(pool) - self.unfit.get(pool, 0) or self.count(pool)


@dataclass(frozen=True)
class LayoutPolicy:
    """The site's choices (`[layout]` of the configuration)."""

    stripe_count: str = LayoutSettings.stripe_count
    striping: str = LayoutSettings.striping
    rules: tuple[PflRule, ...] = ()
    min_size_bytes: int = LayoutSettings.min_size
    told_count: int = 0
    """Instead of those of `auto`: what a part says of this step; 0: none does."""

    @property
    def together(self) -> bool:
        """Stripe counts depend on all files of the step."""
        return self.stripe_count == "auto" and not self.told_count


class LayoutChoice(NamedTuple):
    """What a file gets."""

    layout: Layout | None
    """None: it is left to Lustre."""
    left_because: str = ""
    """Why it is."""
    stripes_because: str = ""
    """Why it has so many stripes, where all files of the step decided that."""


def left_to_lustre(reason: str) -> LayoutChoice:
    return LayoutChoice(None, reason)


class ConfigurationManager:
    """Turns forecasts into layouts. `site_default` is the layout that a new file would get from Lustre."""

    def __init__(self, policy: LayoutPolicy, targets: UsableOsts, site_default: Layout | None = None) -> None:
        self.policy = policy
        self.targets = targets
        self.site_default = site_default

    def choose(self, forecasts: Sequence[Forecast], of_wave: Sequence[int] = ()) -> tuple[LayoutChoice, ...]:
        """What each file gets. One that is better left to Lustre, or whose layout the rules refuse, says why.

        of_wave: the wave in which each is written; empty: all at one time.
        """
        rules = self.policy.rules
        numbers = [next((i for i, r in enumerate(rules) if r.matches(f.name.key)), None) for f in forecasts]
        plain = [
            (self._class(f), wave)
            for f, i, wave in zip(forecasts, numbers, of_wave or [0] * len(forecasts), strict=True)
            if i is None and f.size_bytes >= self._least
        ]
        together = self._together(plain)
        chosen: dict[tuple[int | None, AlikeFiles], LayoutChoice] = {}
        equal: dict[LayoutChoice, LayoutChoice] = {}
        for forecast, i in zip(forecasts, numbers):
            alike = (i, self._class(forecast))
            if alike not in chosen:
                choice = self._accepted(forecast, None if i is None else rules[i], together)
                chosen[alike] = equal.setdefault(choice, choice)
        return tuple(chosen[i, self._class(f)] for f, i in zip(forecasts, numbers))

    @property
    def _least(self) -> int:
        return max(1, self.policy.min_size_bytes)

    def _class(self, forecast: Forecast) -> AlikeFiles:
        shared = forecast.writers > 1
        known = self.policy.striping == "auto" and shared and forecast.contiguous
        contiguous = known or self.policy.striping == "contiguous"
        return AlikeFiles(forecast.size_bytes, contiguous, max(1, forecast.writers))

    def _together(self, files: Sequence[tuple[AlikeFiles, int]]) -> stripe_count.Choice | None:
        """The stripings of `auto` for (file, wave); none where stripe counts are settled otherwise."""
        default = self._plain_default()
        fit = self.targets.fit(default.pool)
        settled = not self.policy.together or default.pattern != "raid0"
        if settled or fit < 1 or (self.site_default and self.site_default.composite):
            return stripe_count.Choice({})
        count = min(stripes_of(default, fit), lustre.LOV_MAX_STRIPE_COUNT)
        own = Striping(count, self._own_bytes(0))
        waves: dict[AlikeFiles, Counter[int]] = {}
        for file, wave in files:
            waves.setdefault(file, Counter())[wave] += 1
        return stripe_count.choose(Counter(file for file, _ in files), fit, own, waves)

    def _accepted(
        self, forecast: Forecast, rule: PflRule | None, together: stripe_count.Choice | None
    ) -> LayoutChoice:
        if forecast.size_bytes < self._least:
            return left_to_lustre(f"{left.SMALLER} {exact_bytes(self._least)}")
        try:
            if rule:
                choice = self._from_rule(rule, forecast)
            elif self.site_default and self.site_default.composite:
                choice = self._from_template(self.site_default, forecast)
            else:
                choice = self._plain(forecast, together)
            if choice.layout:
                check(choice.layout, f"layout of rule [{rule.name}]" if rule else "the default layout")
        except LayoutError as error:
            # A default layout that these rules do not know must not cost the other files their plan.
            return left_to_lustre(str(error))
        if choice.layout and (why := self._why_spilled(choice.layout)):
            return left_to_lustre(why)
        if choice.layout and not any(
            c.stripe_count for c in choice.layout.components[: choice.layout.covered(forecast.size_bytes)]
        ):
            return left_to_lustre(left.ON_MDT)
        return choice

    def _why_spilled(self, layout: Layout) -> str:
        """Lustre writes another pool's name beside OSTs of this one, whatever is asked for; empty: it does not."""
        for component in layout.components:
            if (target := self.targets.spills.get(component.pool)) is not None:
                where = f"pool {target}" if target else "no pool"
                return f"{left.spills(component.pool)}: Lustre makes its files in {where}"
        return ""

    def _from_rule(self, rule: PflRule, forecast: Forecast) -> LayoutChoice:
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
        return LayoutChoice(Layout(tuple(components), composite=True))

    def _from_template(self, template: Layout, forecast: Forecast) -> LayoutChoice:
        components = []
        for component in template.components:
            if component.pattern == "mdt":
                components.append(with_size(component, component.end_bytes))
                continue
            if component.pattern not in ("raid0", "overstriped"):
                return left_to_lustre(f"the default layout has a component of pattern {component.pattern}")
            count = self._wanted_by(component)
            if count < 1:
                return no_ost(component.pool)
            start, end = component.start_bytes, component.end_bytes
            chosen = self._component(start, end, count, component.pool, forecast.size_bytes)
            size = chosen.stripe_size_bytes
            while component.extension_bytes % size and size > lustre.LOV_MIN_STRIPE_SIZE:
                size //= 2
            sized = with_size(component, size)
            if self.policy.striping == "contiguous" and not component.extension_bytes:
                # The site has asked for it, whatever stripe size its default names.
                length = _forecast_length(start, end, forecast.size_bytes)
                size = contiguous_extent_size(length, count, end) or sized.stripe_size_bytes
                sized = msgspec.structs.replace(sized, stripe_size_bytes=size)
            components.append(msgspec.structs.replace(sized, stripe_count=count))
        return LayoutChoice(Layout(tuple(components), composite=True))

    def _wanted_by(self, component: Component) -> int:
        """Stripes that Lustre gives a component of a default layout; 0 when no OST is usable."""
        available = self.targets.count(component.pool)
        return min(lustre.LOV_MAX_STRIPE_COUNT, stripes_of(component, available)) if available else 0

    def _plain(self, forecast: Forecast, together: stripe_count.Choice | None) -> LayoutChoice:
        default = self._plain_default()
        pool, pattern = default.pool, default.pattern
        if pattern not in ("raid0", "overstriped"):
            return left_to_lustre(f"the default layout is of pattern {pattern}")
        available = self.targets.count(pool)
        if available < 1:
            return no_ost(pool)
        if together is None:
            return left_to_lustre(left.MORE_STRIPES)
        file = self._class(forecast)
        count, size = together.of.get(file) or striping(
            file, self._settled_count(default, available, file), self._own_bytes(0)
        )
        layout = Layout((Component(0, lustre.EOF, size, count, pattern, pool),))
        return LayoutChoice(layout, stripes_because=together.why)

    def _plain_default(self) -> Component:
        return self._default_components()[0] if self._default_components() else FILE_SYSTEMS_OWN

    def _settled_count(self, default: Component, available: int, file: AlikeFiles) -> int:
        """A stripe count that does not depend on the other files. Overstriping is kept as it is by `auto` too."""
        setting = self.policy.stripe_count
        if setting == "auto" and default.pattern == "raid0" and self.policy.told_count:
            # Small files beside those that it is about do not come to smaller objects by it.
            most = max(1, file.size_bytes // LEAST_OBJECT_BYTES)
            return min(self.policy.told_count, available, most, lustre.LOV_MAX_STRIPE_COUNT)
        if setting in ("site", "auto"):
            return min(stripes_of(default, available), lustre.LOV_MAX_STRIPE_COUNT)
        count = PAPER_STRIPE_COUNT if setting == "paper" else int(setting)
        return min(count, lustre.LOV_MAX_STRIPE_COUNT if default.pattern == "overstriped" else available)

    def _component(self, start: int, end: int, count: int, pool: str, size_bytes: int) -> Component:
        length = _forecast_length(start, end, size_bytes)
        size = contiguous_extent_size(length, count, end) if self.policy.striping == "contiguous" else None
        return Component(
            start,
            end,
            size or raid0_stripe_size(length, count, end, self._own_bytes(start)),
            count,
            pool=pool,
        )

    def _default_components(self) -> tuple[Component, ...]:
        return self.site_default.components if self.site_default else ()

    def _default_pool(self, offset: int) -> str:
        return self._default_at(offset).pool

    def _own_bytes(self, offset: int) -> int:
        """The stripe size that the site's default, or else the file system, has there."""
        component = self._default_at(offset)
        striped = component.stripe_count and component.stripe_size_bytes
        return striped or FILE_SYSTEMS_OWN.stripe_size_bytes

    def _default_at(self, offset: int) -> Component:
        inside = (c for c in self._default_components() if c.start_bytes <= offset < c.end_bytes)
        return next(inside, FILE_SYSTEMS_OWN)


def _forecast_length(start: int, end: int, size_bytes: int) -> int:
    """Bytes that a file of this forecast has in a component; all of one that it does not reach."""
    reach = end if end != lustre.EOF else max(size_bytes, 2 * start, MIN_STRIPE_SIZE_BYTES)
    return min(reach, size_bytes) - start if size_bytes > start else reach - start


def lustres_own(default: Layout | None, targets: UsableOsts) -> Layout:
    """What a new file gets where this is the default layout (None: the file system's own) and nobody else decides."""
    if default is None:
        return Layout((FILE_SYSTEMS_OWN,))
    components = tuple(
        with_size(c, FILE_SYSTEMS_OWN.stripe_size_bytes)
        if c.pattern == "mdt"
        else msgspec.structs.replace(
            with_size(c, FILE_SYSTEMS_OWN.stripe_size_bytes),
            stripe_count=max(1, min(stripes_of(c, targets.count(c.pool)), lustre.LOV_MAX_STRIPE_COUNT)),
        )
        for c in default.components
    )
    return Layout(components, default.composite)


def no_ost(pool: str) -> LayoutChoice:
    return left_to_lustre(f"{left.NO_USABLE_OST} in pool {pool}" if pool else left.NO_USABLE_OST)


def stripes_of(component: Component, available: int) -> int:
    """Stripes that a component of a default layout comes to on `available` OSTs.

    −1 is every OST; −N of an overstriped one N objects on each (`lod_get_stripe_count_plain`).
    """
    count = component.stripe_count
    if count == -1 or count >= lustre.LOV_ALL_STRIPES_WIDE:
        per_ost = 1 if count == -1 else lustre.LOV_ALL_STRIPES - count + 1
        return available * (per_ost if component.pattern == "overstriped" else 1)
    return max(1, count) if component.pattern == "overstriped" else max(1, min(count, available))


def with_size(component: Component, stripe_size_bytes: int) -> Component:
    """A default layout may leave the stripe size open (0, the file system's own): fill it in."""
    if component.stripe_size_bytes:
        return component
    return msgspec.structs.replace(component, stripe_size_bytes=stripe_size_bytes)
