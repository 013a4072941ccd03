"""Whole HTML documents, and what they may load: nothing but their own style and script."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from tarazu.daemons.page import changes, charts, heat, outcomes, state
from tarazu.daemons.page.charts import ChartPeriod
from tarazu.daemons.page.markup import Markup, element, join
from tarazu.daemons.page.results import SavedResult
from tarazu.daemons.page.ring import Moment
from tarazu.daemons.page.seen import SystemState, file_systems

STYLE = Markup(Path(__file__).with_name("page.css").read_text())
SCRIPT = Markup(Path(__file__).with_name("page.js").read_text())
WITHOUT_SCRIPT_S = 60
"""So often a browser without scripts loads the page again."""

History = Mapping[str, Mapping[ChartPeriod, Sequence[Moment]]]
"""By file system."""


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash(STYLE)}",
        f"script-src {_hash(SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content-Security-Policy of every answer."""


def _whole(title: str, body: Markup, *, every_s: float, top: str = "", class_: str | None = None) -> str:
    """`every_s`: the script renews the page so often; 0: never. `top`: the way to the first page."""
    again = element("meta", http_equiv="refresh", content=str(WITHOUT_SCRIPT_S))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("noscript", again) if every_s else None,
        element("style", STYLE),
    )
    nav = (
        element("nav", element("a", "overview", href=top))
        if top
        else element(
            "nav",
            *(
                element("a", text, href=href)
                for text, href in (
                    ("amiss", "#amiss"), ("map", "#map0"), ("over time", "#time"), ("allocations", "#work"),
                    ("changes", "#changes"),
                    ("results", "#results"), ("all OSTs", "osts"), ("JSON", "status.json"),
                )
            ),
        )
    )  # fmt: skip
    stale = element(
        "p", "The page cannot be had now: what is shown is old.", class_="banner", id="stale", hidden=True
    )
    foot = (
        f"tarazu {metadata.version('tarazu')}. Read only. No job, user or path of running work is shown here; "
        f"times are of the zone {time.strftime('%Z')}."
    )
    whole = element(
        "body",
        element("header", element("h1", title), nav),
        stale,
        element("main", body, class_=class_),
        element("footer", foot),
        element("script", SCRIPT),
    )
    return f"<!doctype html>\n{element('html', head, whole, lang='en', data_every=f'{every_s:g}')}\n"


def overview(
    seen: SystemState,
    history: History,
    found: Sequence[SavedResult],
    directory: str,
    *,
    now_s: float,
    every_s: float,
) -> str:
    """The first page."""
    parts = [
        state.banners(seen, now_s),
        state.headline(seen, now_s),
        state.summary(seen),
        state.problems(seen),
    ]
    if seen.overview:
        parts += [heat.heat_map(of, at) for at, of in enumerate(file_systems(seen.overview))]
    parts += [_over_time(history, now_s), state.allocations(seen)]
    parts += [changes.section(seen.here, found), outcomes.results(found, directory)]
    return _whole("tarazu", join(*parts), every_s=every_s)


def _over_time(history: History, now_s: float) -> Markup:
    parts = [element("h2", "Imbalance over time", id="time")]
    parts.append(element("p", "Largest over mean of the OSTs: 1 is even.", class_="note"))
    for at, (fs_name, periods) in enumerate(history.items()):
        parts.append(element("h3", fs_name) if len(history) > 1 else join())
        parts.append(charts.imbalance(periods, f"c{at}", now_s))
    if not history:
        parts.append(element("p", "Nothing has been noted yet."))
    return element("section", *parts, aria_labelledby="time")


def osts(seen: SystemState, *, now_s: float, every_s: float) -> str:
    """Every OST as text."""
    parts = [state.banners(seen, now_s), state.headline(seen, now_s)]
    if seen.overview:
        parts += [heat.all_of(of) for of in file_systems(seen.overview)]
    return _whole("tarazu: all OSTs", join(*parts), every_s=every_s, top="./", class_="whole")


def result(found: SavedResult) -> str:
    """One result."""
    return _whole(f"tarazu: {found.name}", outcomes.one(found), every_s=0, top="../", class_="whole")
