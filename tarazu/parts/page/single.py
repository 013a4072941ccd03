"""The page of one OST, and that of one server: how it is, its history, who loads it, what is set or proposed for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tarazu.errors import TarazuError
from tarazu.names import quoted
from tarazu.parts.page import changes, charts, heat, links, problems
from tarazu.parts.page.charts import DAY, MONTH, ChartPeriod, Curve, Scale
from tarazu.parts.page.markup import Markup, count, element, join, table
from tarazu.parts.page.past import OST, SERVER, SPANS_S, Event, OstMoment, Past
from tarazu.parts.page.results import SavedResult
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.state import boxes, others
from tarazu.parts.page.times import moment, span
from tarazu.units import human_bytes, human_rate
from tarazu.wire.overview import Overview, Server, Target, busiest

TOP = "../"
SHORT_S, LONG_S = sorted(SPANS_S)
PERIODS = (
    ChartPeriod("the last day", SHORT_S, DAY, 4 * 3600, "%H:%M"),
    ChartPeriod("the last 30 days", LONG_S, MONTH, 5 * 86400, "%b %d"),
)
MOST_EVENTS = 100
MOST_JOBS = 5
"""By bytes, and as many by operations."""


def ost(
    seen: SystemState, t: Target, kept: Past | None, saved: Sequence[SavedResult], now_s: float
) -> Markup:
    assert seen.overview is not None
    where = join(" on ", links.server(t.oss, TOP))
    if t.verdict.amiss:
        since = join(" since ", moment(t.since_s)) if t.since_s else ""
        said = join(t.name, where, f" is {t.verdict}", since, f": {t.why}." if t.why else ".")
    else:
        said = join(t.name, where, " is well.")
    figures = (
        (
            "used",
            f"{t.fill:.1%}",
            f"of {human_bytes(t.total_bytes)}; {human_bytes(t.avail_bytes)} free for users",
        ),
        ("writing", human_rate(t.writing_bytes_per_s), f"reading {human_rate(t.reading_bytes_per_s)}"),
        ("latency", _ms(t.latency_s), "mean time of one I/O in the last interval"),
        (
            "speed",
            "-" if t.relative_speed is None else f"{t.relative_speed:.0%}",
            "of its peers', or of its own usual one",
        ),
        ("promised", human_bytes(t.promised_bytes), "to running steps, not written yet"),
        ("pools", ", ".join(t.pools) or "-", "OST pools that it is in"),
    )
    return join(
        _opening(said, bad=t.verdict.amiss, seen=seen, now_s=now_s),
        _mend(t),
        element("section", element("h2", "Now", id="now"), boxes(figures), aria_labelledby="now"),
        _history(kept, t.fs_name, [t.index], now_s),
        _events(kept, OST, t.name),
        _load([t], seen.overview, f"obdfilter.{quoted(t.name)}.job_stats"),
        _changes(seen, saved, [t.name], t.oss),
    )


def server(
    seen: SystemState, name: str, kept: Past | None, saved: Sequence[SavedResult], now_s: float
) -> Markup:
    overview = seen.overview
    assert overview is not None
    targets = [t for t in overview.targets if t.oss == name]
    served = [of for of in overview.others if of.server == name]
    known = next((s for s in overview.servers if s.name == name), None)
    found = [p for p in problems.problems(seen, saved, TOP) if p.oss == name]
    if known is None or known.stale:
        age = join(" since ", moment(overview.taken_s - known.age_s)) if known else ""
        said = join(f"{name} is silent", age, ".")
    elif found:
        said = join(f"{name} has {count(len(found), 'problem')}: ")
        said = join(
            said,
            *(join("; " if at else "", p.what) for at, p in enumerate(found[:3])),
            "." if len(found) < 4 else "; …",
        )
    else:
        kinds = Counter({"OST": len(targets)}) + Counter(of.kind for of in served)
        own = [count(number, kind) for kind, number in kinds.items()]
        said = join(f"{name} is well, and so are its {' and '.join(own) or '0 OSTs'}.")
    parts = [_opening(said, bad=known is None or known.stale or bool(found), seen=seen, now_s=now_s)]
    parts.append(problems.listed(found))
    if known is not None:
        parts.append(
            element(
                "section",
                element("h2", "Now", id="now"),
                boxes(_figures(known, targets)),
                aria_labelledby="now",
            )
        )
    parts.append(
        element(
            "section",
            element("h2", "OSTs", id="osts"),
            heat.table_of(targets, f"OSTs of {name}", TOP)
            if targets
            else element("p", "None: it serves no OST."),
            aria_labelledby="osts",
        )
    )
    parts.append(others(served, name, TOP))
    for fs_name in sorted({t.fs_name for t in targets}):
        of = [t.index for t in targets if t.fs_name == fs_name]
        parts.append(_history(kept, fs_name, of, now_s, together=f" of its OSTs of {fs_name}"))
    parts += [
        _events(kept, SERVER, name),
        _load(targets, overview, "obdfilter.*.job_stats"),
        _changes(seen, saved, [name, *(t.name for t in targets)], name),
    ]
    return join(*parts)


def servers(overview: Overview, top: str) -> Markup:
    """All of them, as a table."""
    rows: list[tuple[object, ...]] = []
    for s in overview.servers:
        targets = [t for t in overview.targets if t.oss == s.name]
        bad = sum(t.verdict.amiss for t in targets)
        moved = sum(t.moving_bytes_per_s or 0.0 for t in targets)
        rows.append(
            (links.server(s.name, top), "silent" if s.stale else "heard", span(s.age_s), f"{len(targets):,}",
             f"{bad:,}", human_rate(moved), f"{s.cpu_load:.0%}", f"{s.memory_load:.0%}", _ms(s.queue_wait_s))
        )  # fmt: skip
    head = ("OSS", "state", "heard", "OSTs", "with problems", "moves", "CPU", "memory", "queue")
    return table(head, rows, caption="Servers", left=2)


def _figures(s: Server, targets: Sequence[Target]) -> tuple[tuple[str, str, str], ...]:
    moved = sum(t.moving_bytes_per_s or 0.0 for t in targets)
    total = sum(t.total_bytes for t in targets)
    used = 1 - sum(t.free_bytes for t in targets) / total if total else 0.0
    return (
        ("last report", span(s.age_s), "ago" + ("; it is silent" if s.stale else "")),
        ("OSTs", f"{len(targets):,}", f"{used:.1%} of {human_bytes(total)} used"),
        ("moving", human_rate(moved), "written and read by its OSTs"),
        ("CPU", f"{s.cpu_load:.0%}", f"memory {s.memory_load:.0%}"),
        ("network", human_rate(s.lnet_bytes_per_s), "LNet, both ways"),
        ("queue", _ms(s.queue_wait_s), "mean wait of bulk requests"),
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f} ms"


def _opening(said: Markup, *, bad: bool, seen: SystemState, now_s: float) -> Markup:
    """The first sentence; before all of mdsd's silence, since then it is old."""
    if seen.problem:
        return join(
            problems.opening(seen, [], now_s), element("p", "Then: ", said), problems.age(seen, now_s)
        )
    colour = "bad" if bad else "good"
    return join(element("p", said, class_=f"headline {colour}"), problems.age(seen, now_s))


def _mend(t: Target) -> Markup:
    if not t.verdict.amiss:
        return join()
    where, command, note = problems.mend(t)
    return element("p", "What mends it: ", element("code", command), f" on {where}: {note}")


def _history(
    kept: Past | None, fs_name: str, osts: Sequence[int], now_s: float, together: str = ""
) -> Markup:
    """`together`: of several OSTs: their sum, or their mean."""
    ident = f"history-{links.part(fs_name)}"
    parts: list[object] = [element("h2", f"History{together}", id=ident)]
    if kept is None:
        parts.append(element("p", "This page keeps no history now."))
        return element("section", *parts, aria_labelledby=ident)
    later = join("The first point comes at ", moment(kept.next_s(now_s)), ".")
    sum_, mean = (" (sum)", " (mean)") if together else ("", "")
    whats: tuple[tuple[str, str, Callable[[OstMoment], float | None], Scale], ...] = (
        (f"Space used{mean}", "c-fill", lambda m: m.used, Scale(lambda v: f"{v:.1%}", least=0.01)),
        (f"Load{sum_}", "c-load", lambda m: m.moved_bytes_per_s, Scale(human_rate, 0.0, least=1024.0)),
        (
            f"Latency{mean}",
            "c-late",
            lambda m: m.latency_s,
            Scale(lambda v: f"{v * 1e3:.1f} ms", 0.0, least=1e-3),
        ),
    )
    try:
        moments = {
            period: kept.moments(fs_name, osts, period.span_s, now_s - period.length_s, now_s)
            for period in PERIODS
        }
    except TarazuError as error:
        parts.append(element("p", f"It cannot be read: {error}.", class_="banner"))
        return element("section", *parts, aria_labelledby=ident)
    figures = []
    for number, (what, css, value, scale) in enumerate(whats):
        for period, found in moments.items():
            curve = Curve(what, css, [(m.at_s, v) for m in found if (v := value(m)) is not None])
            when = _not_known(found) if found and not curve.points else later
            at = f"{ident}-{number}-{period.span_s}"
            figures.append(charts.figure(what, period, [curve], scale, at, now_s, when))
    parts.append(element("div", *figures, class_="charts"))
    return element("section", *parts, aria_labelledby=ident)


def _not_known(found: Sequence[OstMoment]) -> Markup:
    return join("Its server has reported none since ", moment(found[0].at_s), ".")


def _events(kept: Past | None, kind: str, name: str) -> Markup:
    parts: list[object] = [element("h2", "What happened to it", id="events")]
    found: list[Event] = []
    try:
        found = kept.of(kind, name) if kept else []
    except TarazuError as error:
        parts.append(element("p", f"It cannot be read: {error}.", class_="banner"))
    rows: list[tuple[object, ...]] = [
        (moment(event.at_s), event.was or "not seen before", event.now, event.why or "-")
        for event in found[:MOST_EVENTS]
    ]
    if rows:
        parts.append(
            table(("when", "was", "became", "why"), rows, caption="31 days, the newest first", left=4)
        )
    else:
        parts.append(element("p", "Nothing is noted yet."))
    return element("section", *parts, aria_labelledby="events")


def _load(targets: Sequence[Target], overview: Overview, parameter: str) -> Markup:
    """Who loads it: how much of what is moved, and the jobs that its server names."""
    mine = sum(t.moving_bytes_per_s or 0.0 for t in targets)
    names = {t.fs_name for t in targets}
    whole = sum(t.moving_bytes_per_s or 0.0 for t in overview.targets if t.fs_name in names)
    oss = sorted({t.oss for t in targets})
    share = f", {mine / whole:.1%} of all that {', '.join(sorted(names))} moves" if whole else ""
    promised = sum(t.promised_bytes for t in targets)
    parts: list[object] = [element("h2", "Who loads it", id="load")]
    parts.append(
        element(
            "p",
            f"It moves {human_rate(mine)} now{share}; {human_bytes(promised)} are promised to running job steps.",
        )
    )
    servers = [server for server in overview.servers if server.name in oss]
    by_bytes, by_operations = busiest(servers, MOST_JOBS)
    if by_bytes or by_operations:
        jobs = list(dict.fromkeys((*by_bytes, *by_operations)))
        rows: list[tuple[object, ...]] = [
            (quoted(job.job_id), human_rate(job.bytes_per_s), f"{job.operations_per_s:.0f}") for job in jobs
        ]
        caption = f"jobs on {', '.join(oss)} in the last interval, all its OSTs together"
        parts.append(table(("job", "bytes", "operations/s"), rows, caption=caption, left=1))
    elif oss:
        command = element("code", f"lctl get_param {parameter}")
        said = f"No job is named by its server now (jobid_var). On {', '.join(oss)}, as root, "
        parts.append(element("p", said, command, " says what it counts."))
    return element("section", *parts, aria_labelledby="load")


def _changes(seen: SystemState, saved: Sequence[SavedResult], names: Sequence[str], oss: str) -> Markup:
    found = changes.about(changes.known(seen.here, saved), set(names))
    parts: list[object] = [element("h2", "What is set or proposed", id="changes")]
    if found:
        parts.append(changes.rows(found))
    else:
        parts.append(element("p", "Nothing that this page may read names it."))
    nodes = sorted(of.name for of in saved if of.changes)
    if oss not in nodes:
        command = element("code", f"tarazu change list --json > {quoted(oss)}.json")
        said = (
            f"The list of {oss} is not among the results: ",
            command,
            " there, put among them, is shown here.",
        )
        parts.append(element("p", *said, class_="note"))
    return element("section", *parts, aria_labelledby="changes")
