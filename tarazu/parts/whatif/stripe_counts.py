"""What more stripes would give the same files: twice as many, four times, eight times, all OSTs, `auto`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from tarazu.allocate.eligible import unfit
from tarazu.config import LayoutSettings, Weights
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.lustre import EOF, LOV_MAX_STRIPE_COUNT
from tarazu.model import ANY_RANK, Component, CreateRequest, FileName, Forecast, Layout, SystemView

FACTORS = (2, 4, 8)
MOST_STRIPES = 200_000
"""More, over all files, are not tried: each is placed one after the other, several times."""


def wider(layout: Layout, factor: int, osts: int, pools: Counter[str]) -> Layout:
    """The layout with `factor` times the stripes (0: all OSTs) in each component, as far as there are OSTs."""

    def widened(component: Component) -> Component:
        if not component.stripe_count or component.pattern != "raid0":
            return component
        most = min(LOV_MAX_STRIPE_COUNT, pools[component.pool] if component.pool else osts)
        count = min(most, component.stripe_count * factor) if factor else most
        return msgspec.structs.replace(component, stripe_count=max(count, component.stripe_count))

    return msgspec.structs.replace(layout, components=tuple(map(widened, layout.components)))


def variants(
    view: SystemView, requests: Sequence[CreateRequest], settings: LayoutSettings
) -> list[tuple[str, tuple[CreateRequest, ...]]]:
    """(name, the requests with other stripe counts); those that change nothing are left out."""
    pools = Counter(pool for ost in view.osts for pool in ost.pools)
    alternatives: list[tuple[str, tuple[CreateRequest, ...]]] = []
    seen = {tuple(requests)}
    for factor in (*FACTORS, 0):
        layouts = {r.layout: wider(r.layout, factor, len(view.osts), pools) for r in requests}
        changed = tuple(msgspec.structs.replace(r, layout=layouts[r.layout]) for r in requests)
        if changed not in seen:
            seen.add(changed)
            alternatives.append((f"{factor} x" if factor else "all OSTs", changed))
    return [*alternatives, ("auto", auto(view, requests, settings))]


def auto(
    view: SystemView, requests: Sequence[CreateRequest], settings: LayoutSettings
) -> tuple[CreateRequest, ...]:
    """As the configuration manager would stripe them under `layout.stripe_count = auto`, beside the commonest layout
    as the default. Files that it would leave to Lustre keep their own.
    """
    pools = Counter(pool for ost in view.osts for pool in ost.pools)
    share = sum(r.size_bytes for r in requests) / max(1, len(view.osts))
    targets = UsableOsts(len(view.osts), pools, unfit(view.osts, Weights(), share))
    default = Counter(r.layout for r in requests).most_common(1)[0][0]
    policy = LayoutPolicy("auto", "raid0", (), settings.min_size)
    forecasts = [Forecast(_NAMELESS, r.size_bytes, writers=r.writers) for r in requests]
    choices = ConfigurationManager(policy, targets, default).choose(forecasts)
    return tuple(
        msgspec.structs.replace(r, layout=choice.layout or r.layout)
        for r, choice in zip(requests, choices, strict=True)
    )


_NAMELESS = FileName("", "", "", False, ANY_RANK, 0, 0)


def told(requests: Sequence[CreateRequest]) -> str:
    """The stripe counts of plain files, `1` or `2-8`; of progressive ones those of the components that they reach."""
    counts = {
        c.stripe_count
        for r in set(requests)
        for c in r.layout.components[: r.layout.covered(r.size_bytes)]
        if c.stripe_count
    }
    return f"{min(counts)}-{max(counts)}" if len(counts) > 1 else str(min(counts, default=0))


def plain(stripe_count: int, stripe_size_bytes: int) -> Layout:
    return Layout((Component(0, EOF, stripe_size_bytes, stripe_count),))
