"""What changed since yesterday: OSTs, servers, mdsd, and what tarazu set and took back, where the page may read it."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tarazu.changes.trail import Event as TrailEvent
from tarazu.daemons.changes import words
from tarazu.daemons.changes.here import Listed
from tarazu.ost_state import Verdict
from tarazu.parts.page import links, past
from tarazu.parts.page.markup import Markup, element, join, table
from tarazu.parts.page.past import GONE, MDSD, OST, SERVER, Event
from tarazu.parts.page.results import SavedResult
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.times import moment
from tarazu.wire.overview import Target

DAY_S = 86400
MOST_ROWS = 40
TRAIL = {
    "set": "was set",
    "restored": "was taken back",
    "expired": "has ended and was taken back",
    "worse": "made things worse",
    "failed": "could not be set or taken back",
    "left": "was left to somebody else's value",
    "gone": "is gone: Lustre has forgotten it",
}
"""What is told of the trail."""


class Line(NamedTuple):
    at_s: float
    what: Markup
    why: str


def section(seen: SystemState, events: Sequence[Event], saved: Sequence[SavedResult], now_s: float) -> Markup:
    """The newest first. `events`: of the last day."""
    lines = sorted(
        [*_of_events(seen, events), *_of_daemons(seen, now_s), *_of_changes(seen, saved, now_s)],
        key=lambda line: -line.at_s,
    )
    rows: list[tuple[object, ...]] = [
        (moment(at_s), what, why or "-") for at_s, what, why in lines[:MOST_ROWS]
    ]
    parts: list[object] = [element("h2", "What changed since yesterday", id="news")]
    if rows:
        parts.append(table(("when", "what", "why"), rows, caption="Changes, the newest first", left=3))
    else:
        parts.append(element("p", "Nothing that this page has seen."))
    if len(lines) > MOST_ROWS:
        parts.append(element("p", f"and {len(lines) - MOST_ROWS:,} more: see the JSON.", class_="note"))
    begun_s = seen.watched_since_s
    if begun_s is not None and begun_s > now_s - DAY_S:
        parts.append(element("p", "This page has watched since ", moment(begun_s), " only.", class_="note"))
    if all(of.trail is None for of in saved):
        command = element("code", "tarazu change log")
        said = "What tarazu set and took back on a server is root's to read, by "
        parts.append(
            element(
                "p",
                said,
                command,
                " there; with --json, put among the results, it is shown here.",
                class_="note",
            )
        )
    return element("section", *parts, aria_labelledby="news")


def _of_events(seen: SystemState, events: Sequence[Event]) -> Iterator[Line]:
    """One line of each name, however often it came and went."""
    targets = {t.name: t for t in seen.overview.targets} if seen.overview else {}
    by_name: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        by_name.setdefault((event.kind, event.name), []).append(event)
    for (kind, name), of in by_name.items():
        last = of[-1]
        worse = [event for event in of if past.is_worse(event)]
        why = last.why or (worse[-1].why if worse else "")
        said = _of_ost(name, of, targets) if kind == OST else _of_daemon(kind, name, of)
        yield Line(last.at_s, join(said, f" ({len(worse)} times)" if len(worse) > 1 else ""), why)


def _of_ost(name: str, events: Sequence[Event], targets: dict[str, Target]) -> Markup:
    who = links.ost(targets[name]) if name in targets else name
    was, now = events[0].was, events[-1].now
    if now == GONE:
        return join(who, " is gone: mdsd no longer knows it")
    if not was or was == GONE:
        return join(who, " is new" if now == Verdict.OK else f" is new, and {now}")
    if now == Verdict.OK:
        bad = max(
            (Verdict(event.was) for event in events if event.was not in ("", GONE)), key=lambda v: v.weight
        )
        return join(who, f" is well again; it was {bad}")
    return join(who, f" became {now}" + (f"; it was {was}" if was not in (Verdict.OK, now) else ""))


def _of_daemon(kind: str, name: str, events: Sequence[Event]) -> Markup:
    was, now = events[0].was, events[-1].now
    if kind == SERVER:
        said = {past.SILENT: "fell silent", past.HEARD: "reports again" if was else "is new", GONE: "is gone"}
        return join(links.server(name), f" {said.get(now, now)}")
    if name == MDSD:
        return join("mdsd ", "answers again" if now == past.ANSWERS else "stopped answering")
    return join(f"mdsd at {name} is {now}" + (f"; it was {was}" if was and was != now else ""))


def _of_daemons(seen: SystemState, now_s: float) -> Iterator[Line]:
    if seen.work and seen.overview and seen.work.uptime_s < DAY_S:
        yield Line(seen.overview.taken_s - seen.work.uptime_s, join("mdsd was started"), "")
    if seen.started_s > now_s - DAY_S:
        yield Line(seen.started_s, join("tarazu-page was started"), "")


def _of_changes(seen: SystemState, saved: Sequence[SavedResult], now_s: float) -> Iterator[Line]:
    """Of the trail; of nodes whose trail cannot be read here, of what is set there."""
    told = set()
    logs = [("", seen.trail), *((of.name, of.trail) for of in saved if of.trail is not None)]
    for node, event in ((node, event) for node, trail in logs for event in trail):
        at_s = time_of(event)
        if event.event in TRAIL and at_s >= now_s - DAY_S:
            told.add(event.id)
            what = f"{node}: " * bool(node) + f"{event.lever or event.agent} {event.target}".rstrip()
            values = words.short(words.values(event.wanted), words.VALUE)
            by = f" (by {event.by})" * bool(event.by)
            yield Line(
                at_s, join(what, f" ({values}) " if values else " ", TRAIL[event.event]), event.why + by
            )
    listed = [("", one) for agent in seen.here for one in agent.changes]
    listed += [(of.name, one) for of in saved if of.changes for one in of.changes.changes]
    for node, one in listed:
        if _is_news(one, now_s) and one.id not in told:
            what = join(f"{node}: " if node else "", f"{one.lever} {one.target}".rstrip())
            yield Line(one.since_s, join(what, f": {words.state(one)}: {words.value(one)}"), one.why)


def _is_news(one: Listed, now_s: float) -> bool:
    return now_s - DAY_S <= one.since_s <= now_s


def time_of(event: TrailEvent) -> float:
    """Unix time; 0 of what is none."""
    try:
        return calendar.timegm(time.strptime(event.time, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return 0.0
