"""What `tarazu history report`, `whatif` and `tarazu change list` found, as the files of a directory have it."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.parts.page import changes
from tarazu.parts.page.markup import Markup, count, element, join, table
from tarazu.parts.page.results import (
    SavedJob,
    SavedLog,
    SavedPlacement,
    SavedReport,
    SavedResult,
    SavedSpread,
)
from tarazu.parts.page.times import moment
from tarazu.units import figure, human_bytes

MOST_ROWS = 200


def results(found: Sequence[SavedResult], directory: str) -> Markup:
    """All of them, a line each."""
    parts: list[object] = [element("h2", "Results", id="results")]
    if found:
        rows: list[tuple[object, ...]] = [
            (element("a", of.name, href=f"results/{of.name}"), _kind(of), _in_short(of), moment(of.at_s))
            for of in found
        ]
        parts.append(
            table(("name", "what", "in short", "of"), rows, caption="Results, the newest first", left=4)
        )
    else:
        command = element("code", f"tarazu history report --json > {directory}/week.json")
        parts.append(element("p", "None yet: ", command, " shows one here."))
    return element("section", *parts, aria_labelledby="results")


def one(of: SavedResult) -> Markup:
    """One of them, whole."""
    head = element("p", "Of ", moment(of.at_s), ", ", element("a", "as JSON", href=f"{of.name}.json"), ".")
    if of.problem:
        return join(head, element("p", of.problem, class_="banner"))
    if of.changes:
        return join(head, changes.rows([(of.name, one) for one in of.changes.changes]))
    if of.trail is not None:
        lines: list[tuple[object, ...]] = [
            (event.time, event.event, event.lever or event.agent, event.target, event.why, event.by)
            for event in of.trail[: -MOST_ROWS - 1 : -1]
        ]
        names = ("when (UTC)", "event", "lever", "target", "why", "by")
        return join(head, table(names, lines, caption="Events, the newest first", left=6))
    return join(head, _report(of.report) if of.report else join(*map(_log, of.whatif)))


def _kind(of: SavedResult) -> str:
    if of.trail is not None:
        return "log of changes"
    return "?" if of.problem else "report" if of.report else "changes" if of.changes else "whatif"


def _in_short(of: SavedResult) -> str:
    if of.problem:
        return of.problem
    if of.report:
        runs = sum(a.runs for a in of.report.applications)
        gaining = sum(a.gaining for a in of.report.applications)
        return (
            f"{gaining:,} of {runs:,} runs of {len(of.report.applications):,} applications would have gained"
        )
    if of.changes:
        return count(len(of.changes.changes), "change")
    if of.trail is not None:
        return count(len(of.trail), "event")
    jobs = [job for log in of.whatif for job in log.file_systems]
    gains = [job.gain_s for job in jobs if job.gain_s is not None]
    if not gains:
        return f"{len(jobs):,} jobs, none of which a gain is known"
    return f"{len(jobs):,} jobs; {sum(gains):,.1f} s to gain at most, in {len(gains):,} of them"


def _report(of: SavedReport) -> Markup:
    rows: list[tuple[object, ...]] = [
        (
            a.application, a.fs_name, a.runs, a.gaining, human_bytes(a.bytes),
            f"{a.placed_bytes / a.bytes:.0%}" if a.bytes else "-",
            *map(figure, (a.lustre_cost, a.tarazu_cost, a.bound_cost)),
            *map(figure, (a.lustre_time, a.tarazu_time, a.bound_time)),
        )
        for a in of.applications[:MOST_ROWS]
    ]  # fmt: skip
    head = (
        "application", "fs", "runs", "gain", "bytes", "placed", "cost: Lustre", "tarazu", "bound",
        "time: Lustre", "tarazu", "bound",
    )  # fmt: skip
    reasons: list[tuple[object, ...]] = [
        (r.why, r.runs, human_bytes(r.bytes)) for r in of.reasons[:MOST_ROWS]
    ]
    note = "Cost is max / mean of the bytes per OST; time is over that of equal work on all: 1 is perfect."
    return join(
        element("p", "Runs from ", moment(of.wanted.since_s), " to ", moment(of.wanted.until_s), ". ", note),
        table(head, rows, caption="Applications", left=2),
        table(("why not", "runs", "bytes"), reasons, caption="Why files were left to Lustre"),
    )


def _log(of: SavedLog) -> Markup:
    return element("section", element("h2", of.log), *map(_job, of.file_systems))


def _job(of: SavedJob) -> Markup:
    what = (
        f"{of.application}: {of.ranks:,} ranks wrote {human_bytes(of.written_bytes)} to {of.files:,} files "
        f"on {of.osts:,} OSTs."
    )
    gain = "" if of.gain_s is None else f" To gain: {of.gain_s:,.1f} s at most."
    placed: list[tuple[str, SavedPlacement]] = [("as it was", of.actual)] if of.actual else []
    placed += [(p.policy, p) for p in (of.compared.placed if of.compared else ())]
    rows: list[tuple[object, ...]] = [
        (name, p.why_not or "", _spread(p.ost_cost), _spread(p.time_s)) for name, p in placed
    ]
    if of.compared:
        rows.append(("bound", "", figure(of.compared.ost_cost_bound), figure(of.compared.time_bound_s)))
    return join(
        element("p", what, gain),
        table(("placed by", "why not", "OST cost", "seconds"), rows, caption="Placements", left=2),
    )


def _spread(of: SavedSpread | None) -> str:
    if of is None:
        return "-"
    if of.lowest == of.highest:
        return figure(of.median)
    return f"{figure(of.median)} ({figure(of.lowest)}–{figure(of.highest)})"
