"""Whole HTML documents, and what they may load: nothing but their own style and script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from tarazu.parts.page import changes, charts, heat, news, outcomes, problems, single, state
from tarazu.parts.page.charts import ChartPeriod
from tarazu.parts.page.markup import Markup, element, join
from tarazu.parts.page.past import Event, Past
from tarazu.parts.page.results import SavedResult
from tarazu.parts.page.ring import Moment
from tarazu.parts.page.seen import SystemState, file_systems
from tarazu.parts.page.times import moment, zone

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


NAV = (("overview", ""), ("all OSTs", "osts"), ("all servers", "servers"), ("JSON", "status.json"))
PARTS = (
    ("problems", "#problems"), ("changed since yesterday", "#news"), ("map", "#map0"), ("over time", "#time"),
    ("allocations", "#work"), ("changes", "#changes"), ("results", "#results"),
)  # fmt: skip


def _whole(
    title: str,
    body: Markup,
    *,
    every_s: float,
    top: str = "",
    here: str | None = None,
    parts: Sequence[tuple[str, str]] = (),
    class_: str | None = None,
) -> str:
    """`every_s`: the script renews the page so often; 0: never. `top`: the way to the first page. `here`: which of
    `NAV` this is. `parts`: of this page, to go to.
    """
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
    pages = element(
        "nav",
        *(
            element("a", text, href=f"{top}{href}" or "./", aria_current="page" if href == here else None)
            for text, href in NAV
        ),
        aria_label="pages",
    )
    within = element(
        "nav", *(element("a", text, href=href) for text, href in parts), aria_label="on this page"
    )
    foot = (
        f"tarazu {metadata.version('tarazu')}. Read only. Of running work job ids are shown here, no paths."
    )
    whole = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        element("p", "", class_="banner", id="stale", role="alert", hidden=True),
        element("p", "", class_="unseen", id="spoken", role="status"),
        element("header", element("h1", title), pages, within if parts else None),
        element("main", body, class_=class_, id="content", tabindex="-1"),
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
    events: Sequence[Event] = (),
) -> str:
    """The first page. `events`: of the last day."""
    amiss = problems.problems(seen, found)
    parts = [
        problems.opening(seen, amiss, now_s),
        problems.age(seen, now_s),
        problems.listed(amiss),
        news.section(seen, events, found, now_s),
    ]
    if seen.overview:
        parts += [heat.heat_map(of, at) for at, of in enumerate(file_systems(seen.overview))]
    parts += [state.summary(seen), _over_time(seen, history, now_s), state.allocations(seen)]
    parts += [changes.section(seen.here, found), outcomes.results(found, directory)]
    body = join(*parts)
    there = [(text, href) for text, href in PARTS if f' id="{href[1:]}"' in body]
    return _whole("tarazu", body, every_s=every_s, here="", parts=there)


def _over_time(seen: SystemState, history: History, now_s: float) -> Markup:
    parts = [element("h2", "Imbalance over time", id="time")]
    parts.append(element("p", "Largest over mean of the OSTs: 1 is even.", class_="note"))
    soon = join("The first point comes by ", moment((now_s // 60 + 2) * 60), ".")
    later = join("The first point comes once mdsd answers.") if seen.problem else soon
    for at, (fs_name, periods) in enumerate(history.items()):
        parts.append(element("h3", fs_name) if len(history) > 1 else join())
        parts.append(charts.imbalance(periods, f"c{at}", now_s, later))
    if not history:
        parts.append(element("p", "Nothing has been noted yet. ", later))
    return element("section", *parts, aria_labelledby="time")


def osts(seen: SystemState, saved: Sequence[SavedResult], *, now_s: float, every_s: float) -> str:
    """Every OST as text."""
    parts = _opening(seen, saved, now_s)
    if seen.overview:
        parts += [heat.all_of(of) for of in file_systems(seen.overview)]
    return _whole("tarazu: all OSTs", join(*parts), every_s=every_s, top="./", here="osts", class_="whole")


def servers(seen: SystemState, saved: Sequence[SavedResult], *, now_s: float, every_s: float) -> str:
    """Every server as text."""
    parts = _opening(seen, saved, now_s)
    if seen.overview:
        parts.append(single.servers(seen.overview, ""))
    return _whole(
        "tarazu: all servers", join(*parts), every_s=every_s, top="./", here="servers", class_="whole"
    )


def _opening(seen: SystemState, saved: Sequence[SavedResult], now_s: float) -> list[Markup]:
    return [problems.opening(seen, problems.problems(seen, saved), now_s), problems.age(seen, now_s)]


def one(
    kind: str,
    seen: SystemState,
    name: str,
    kept: Past | None,
    saved: Sequence[SavedResult],
    *,
    now_s: float,
    every_s: float,
) -> str | None:
    """The page of one of the `osts` or `servers`; None: mdsd knows none of that name."""
    targets = seen.overview.targets if seen.overview else ()
    servers = seen.overview.servers if seen.overview else ()
    if kind == "osts":
        found = next((t for t in targets if t.name == name), None)
        body = single.ost(seen, found, kept, saved, now_s) if found else None
    else:
        known = any(s.name == name for s in servers) or any(t.oss == name for t in targets)
        body = single.server(seen, name, kept, saved, now_s) if known else None
    return None if body is None else _whole(name, body, every_s=every_s, top="../")


def result(found: SavedResult) -> str:
    """One result."""
    return _whole(f"tarazu: {found.name}", outcomes.one(found), every_s=0, top="../", class_="whole")


def failed(since_s: float, top: str) -> str:
    """In place of a page that cannot be made."""
    said = join("This page has not worked since ", moment(since_s), ": `journalctl -u tarazu-page` says why.")
    body = join(element("p", said, class_="headline bad"), zone())
    return _whole("tarazu", body, every_s=0, top=top)
