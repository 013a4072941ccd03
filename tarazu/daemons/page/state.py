"""The page's head, what is amiss, and what mdsd has given away: allocations and promises, no jobs, users or paths."""

from __future__ import annotations

import time

from tarazu.daemons.page.markup import Markup, element, join, table
from tarazu.daemons.page.seen import FileSystemOverview, SystemState, amiss, deaf, file_systems
from tarazu.units import human_bytes, human_rate

MOST_ROWS = 200


def moment(at_s: float) -> Markup:
    """A time for people, in the server's own zone; the figure itself where no calendar has it."""
    try:
        local = time.localtime(at_s)
    except (OverflowError, ValueError, OSError):
        return element("span", f"{at_s:g}")
    return element(
        "time",
        time.strftime("%Y-%m-%d %H:%M:%S", local),
        datetime=time.strftime("%Y-%m-%dT%H:%M:%S%z", local),
    )


def span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def banners(seen: SystemState, now_s: float) -> Markup:
    """What must be known before anything else is read."""
    lines = []
    if seen.problem:
        what = "What follows is old." if seen.overview else "Nothing is known yet."
        lines.append(
            f"mdsd has not answered for {span(now_s - seen.since_s)}: {seen.problem}. {what} "
            "Running and new jobs write as they would without tarazu."
        )
    elif seen.overview is None:
        lines.append("mdsd has not been asked yet.")
    if seen.overview and seen.overview.site_stopped:
        lines.append(f"tarazu is switched off on the whole site: {seen.overview.site_stopped}")
    return join(*(element("p", line, class_="banner") for line in lines))


def headline(seen: SystemState, now_s: float) -> Markup:
    if seen.overview is None:
        return element("p", "No server has been heard.", class_="headline")
    targets = seen.overview.targets
    bad, silent = amiss(targets), [s for s in seen.overview.servers if s.stale]
    words = [f"{len(bad):,} of {len(targets):,} OSTs amiss" if bad else f"All {len(targets):,} OSTs are well"]
    if silent:
        words.append(f"{len(silent):,} of {len(seen.overview.servers):,} servers silent")
    age_s = now_s - seen.overview.taken_s
    said = join("As mdsd said at ", moment(seen.overview.taken_s), f", {span(age_s)} ago.")
    return join(
        element("p", "; ".join(words) + ".", class_=f"headline {'bad' if bad or silent else 'good'}"),
        element("p", said, class_="note old" if age_s > seen.old_after_s else "note"),
    )


def figures(of: FileSystemOverview) -> Markup:
    """A file system in a few figures."""
    load = of.imbalance.load
    rows: tuple[tuple[str, str, str], ...] = (
        ("OSTs", f"{len(of.targets):,}", f"on {len({t.oss for t in of.targets}):,} servers"),
        ("used", f"{of.fill:.1%}", f"of {human_bytes(of.total_bytes)}; the fullest OST {of.fullest:.1%}"),
        ("imbalance of fill", f"{of.imbalance.fill:.2f}", "fullest over mean; 1 is even"),
        (
            "imbalance of load",
            "-" if load is None else f"{load:.2f}",
            "nothing is moved" if load is None else "busiest over mean; 1 is even",
        ),
        ("writing", human_rate(of.writing_bytes_per_s), f"reading {human_rate(of.reading_bytes_per_s)}"),
        ("promised", human_bytes(of.promised_bytes), "to running steps, not written yet"),
    )
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", note)))
            for name, value, note in rows
        ),
        class_="figures",
    )


def problems(seen: SystemState) -> Markup:
    """OSTs and servers that are amiss, with why and since when."""
    overview = seen.overview
    if overview is None:
        return join()
    bad = amiss(overview.targets)
    parts = [element("h2", "What is amiss", id="amiss")]
    if bad:
        rows: list[tuple[object, ...]] = [
            (
                t.name,
                t.oss,
                element("span", t.verdict, class_=f"word v-{t.verdict}"),
                t.why,
                moment(t.since_s) if t.since_s else "-",
            )
            for t in bad[:MOST_ROWS]
        ]
        parts.append(
            table(("OST", "OSS", "verdict", "why", "since"), rows, caption="OSTs, the gravest first", left=5)
        )
        if len(bad) > MOST_ROWS:
            parts.append(element("p", f"and {len(bad) - MOST_ROWS:,} more: see the JSON.", class_="note"))
    else:
        parts.append(element("p", "No OST."))
    if servers := deaf(overview.servers):
        lines: list[tuple[object, ...]] = [
            (
                s.name,
                span(s.age_s),
                "; ".join(
                    ["silent"] * s.stale
                    + [f"cannot read {name}" for name in s.unreadable]
                    + [f"impossible values of {name}" for name in s.impossible]
                ),
            )
            for s in servers[:MOST_ROWS]
        ]
        parts.append(table(("OSS", "last heard", "what"), lines, caption="Servers", left=3))
    return element("section", *parts, aria_labelledby="amiss")


def summary(seen: SystemState) -> Markup:
    """Each file system's figures."""
    if seen.overview is None:
        return join()
    return join(
        *(
            element("section", element("h2", of.name, id=f"fs{at}"), figures(of), aria_labelledby=f"fs{at}")
            for at, of in enumerate(file_systems(seen.overview))
        )
    )


MOST_PROMISED = 10


def allocations(seen: SystemState) -> Markup:
    work, overview = seen.work, seen.overview
    if work is None or overview is None:
        return element("section")
    gate = "open" if work.gate_open else f"closed: {work.why_closed}"
    answers = ", ".join(f"{count:,} {status}" for status, count in sorted(work.answers.items())) or "none"
    lines = (
        ("answered", f"{answers}, in the {span(work.uptime_s)} since mdsd started"),
        ("waiting", f"{work.waiting:,}"),
        ("standing", f"{work.promises:,} allocations with promises, of {work.promised_stripes:,} stripes"),
        ("promised", ", ".join(f"{fs} {human_bytes(b)}" for fs, b in sorted(work.promised_bytes.items()))),
        ("policy", f"{work.policy}; its gate is {gate}"),
    )
    most = sorted(overview.targets, key=lambda t: (-t.promised_bytes, t.name))[:MOST_PROMISED]
    rows: list[tuple[object, ...]] = [
        (t.name, t.oss, t.verdict, human_bytes(t.promised_bytes), human_bytes(t.avail_bytes))
        for t in most
        if t.promised_bytes
    ]
    parts: list[object] = [
        element("h2", "Allocations", id="work"),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", text or "nothing")) for name, text in lines),
            class_="lines",
        ),
    ]
    if rows:
        head = ("OST", "OSS", "verdict", "promised", "free")
        parts.append(table(head, rows, caption="OSTs with the most promised", left=3))
    return element("section", *parts, aria_labelledby="work")
