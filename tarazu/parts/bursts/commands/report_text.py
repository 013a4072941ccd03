"""A report on spatial bursts as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tarazu.cli.output import table_lines
from tarazu.parts.bursts.measures.applications import Trait
from tarazu.parts.bursts.measures.day import ApplicationStatistics, Share
from tarazu.parts.bursts.measures.published import STATISTICS
from tarazu.units import counted, figure, human_bytes, percent

MOST_APPLICATIONS = 15
MAPPED = "busiest 10 %", "by bytes", "of busiest 1 %"


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Of a report (`tarazu.parts.bursts.measures.report`)."""
    machine = f"{counted(found['cabinets'], 'cabinet')}, {counted(found['io_nodes'], 'I/O node')}"
    times = f"{_time(found['start_s'])} to {_time(found['end_s'])} UTC"
    yield f"spatial bursts, {times}: {human_bytes(found['bytes'])} of {counted(found['nodes'], 'node')} in {machine}"
    yield ""
    yield from table_lines(
        ("at a moment", "mean", "by bytes", "Tianhe-1A", "CS19"),
        (
            (what, *map(percent, moments.values()), *_published(key))
            for what, moments, key in (
                ("bytes of the busiest 1 % of nodes", found["busiest_nodes"], "top nodes"),
                ("bytes of the busiest 20 % of cabinets", found["busiest_cabinets"], "top cabinets"),
            )
        ),
    )
    if found["io_nodes"]:
        yield ""
        yield from table_lines(
            ("mapping", *MAPPED, "NUD"),
            ((name, *mapped(its), f"{its['unevenness']:.3f}") for name, its in found["mappings"].items()),
        )
    yield ""
    yield from _jobs(found)
    if found["statistics"].applications:
        yield _consistency(found["statistics"])
    if found["applications"]:
        yield ""
        yield from _applications(found["applications"])
    yield ""
    yield from _remarks(found)


def mapped(its: Mapping[str, Any]) -> tuple[str, ...]:
    """Of one mapping, as `MAPPED`."""
    return (*map(percent, its["busiest"].values()), figure(its["of_busiest"], ".1f"))


def _remarks(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{counted(found['intervals'], 'interval')} with traffic; mean: of intervals; "
    yield "by bytes: those with more traffic count more"
    for count, what in (
        (found["unowned_bytes"], "moved where no job that is known ran"),
        (found["elsewhere_bytes"], "moved by nodes that are not the machine's"),
    ):
        if count:
            yield f"{human_bytes(count)} {what}"
    if found["partly"]:
        theirs = f"they, and {human_bytes(found['partly_bytes'])} of theirs, are in intervals only"
        yield f"{counted(found['partly'], 'job')} ran beyond the period, or while nobody counted: {theirs}"


def _jobs(found: Mapping[str, Any]) -> Iterator[str]:
    jobs = found["jobs"]
    rows: tuple[tuple[str, Share, str], ...] = (
        ("rank-0 I/O, of jobs on several nodes", jobs.rank_0, "root"),
        ("even traffic, of those with all ranks' I/O", jobs.even, "even"),
        ("in as few cabinets as can be, of jobs on several nodes", jobs.concentrated, "minimal"),
        ("nodes uneven over cabinets, of jobs in several", jobs.cabinets_uneven, "uneven nodes"),
        ("data-intensive, of all jobs", jobs.intensive, "intensive"),
        ("their part of all jobs' bytes", jobs.intensive_bytes, "their traffic"),
        ("all ranks' I/O, of all jobs", jobs.all_rank, "all rank"),
        ("both: optimizable, if they communicate little", jobs.optimizable, "optimizable"),
        ("divergent, of applications with more than 5 jobs", found["statistics"].divergent, "divergent"),
    )
    yield from table_lines(
        (
            f"{counted(jobs.jobs, 'job')}, {jobs.multi_node} on several nodes",
            "share",
            "known",
            "Tianhe-1A",
            "CS19",
        ),
        (
            (what, percent(share.share), "-" if key == "their traffic" else str(share.of), *_published(key))
            for what, share, key in rows
        ),
    )


def _consistency(found: ApplicationStatistics) -> str:
    degrees = {
        "data-intensive": found.consistency_intensive,
        "all ranks": found.consistency_all_rank,
    }
    means = (f"{name} {'unknown' if its is None else percent(its)}" for name, its in degrees.items())
    return f"mean degree of consistency of {counted(found.applications, 'application')}: {', '.join(means)}"


def _applications(found: list[dict[str, Any]]) -> Iterator[str]:
    what = "user application nodes jobs bytes intensive all-rank divergence optimizable"
    rows = (
        (
            one["user"],
            one["name"],
            its.nodes,
            its.jobs,
            human_bytes(one["bytes"]),
            _trait(its.intensive),
            _trait(its.all_rank),
            f"{its.divergence:.2f}{'!' if its.divergent else ''}",
            "yes" if its.optimizable else "no",
        )
        for one in found[:MOST_APPLICATIONS]
        if (its := one["found"])
    )
    yield from table_lines(what.split(), rows, left=2)
    if len(found) > MOST_APPLICATIONS:
        yield f"and {len(found) - MOST_APPLICATIONS} more (--json)"


def _trait(found: Trait) -> str:
    return f"{100 * found.share:.0f} %"


def _published(key: str) -> tuple[str, str]:
    """Of Tianhe-1A and CS19, in percent."""
    values = next(each.values for each in STATISTICS if each.key == key)
    return f"{values['tianhe-1a']:.1f} %", f"{values['cs19']:.1f} %"


def _time(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")
