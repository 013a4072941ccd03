"""mdsd's families. Those of targets carry the labels that exporters of Lustre's own statistics use."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tarazu.daemons.mdsd.service import Mdsd
from tarazu.daemons.mdsd.system import System
from tarazu.figures import Family, counter, counters, gauge, histogram
from tarazu.model import Oss, Ost, SystemView
from tarazu.parts.metrics.exporter import Ask
from tarazu.stats.moved import UNKNOWN, Moved
from tarazu.stats.params import target_name
from tarazu.stats.view import Details
from tarazu.wire.reports import STATISTICS, OssReport
from tarazu.wire.transport import of_sockets

TARGET = ("component", "target", "fs")
SERVER = ("component", "target")

_OF_OST = (
    ("size_bytes", "Capacity of the OST."),
    ("used_ratio", "Share of its space in use."),
    ("available_bytes", "Space that users may still take, as the OST reports it."),
    ("promised_bytes", "Promised to running job steps and not yet written."),
    ("usable", "1 while new objects may be created on the OST; if 0, tarazu_target_unusable says why."),
    ("relative_speed_ratio", "Speed beside its peers or its own history, the lower; absent while unknown."),
    ("own_speed_ratio", "Speed compared with its own history, 1 at most; absent while unknown."),
    ("slow_score_ratio", "0 for well, 1 for slow: how much of a proof there is."),
    ("write_speed_bytes_per_second", "Speed in bytes per second of I/O time; absent while unknown."),
    ("writing_bytes_per_second", "Written in the server's last interval; absent while unknown."),
    ("reading_bytes_per_second", "Read in the server's last interval; absent while unknown."),
    ("io_seconds", "Mean time of an I/O in that interval; absent without I/O."),
)
_OF_OSS = (
    ("report_age_seconds", "Age of the newest report."),
    ("lnet_load_ratio", "LNet bytes per second over the highest rate seen."),
    ("unreadable_sources", "Statistics that the server could not read."),
    ("routed_bytes_per_second", "Forwarded by an LNet router; absent for other servers."),
    *((of.metric, of.text) for of in STATISTICS.values()),
)


def families(mdsd: Mdsd, ask: Ask) -> Iterator[Family]:
    yield from ask(lambda: list(figures(mdsd)))
    yield from of_targets(mdsd.system, ask)


def of_targets(system: System, ask: Ask) -> Iterator[Family]:
    """OSTs and servers, asked of mdsd's loop one file system at a time."""
    fs_names = ask(system.views.fs_names)
    views = [ask(partial(system.view, fs_name, time.monotonic())) for fs_name in fs_names]
    details = [ask(partial(system.views.details, fs_name, time.monotonic())) for fs_name in fs_names]
    yield from _targets(views, details)
    now = time.monotonic()
    servers = ask(system.views.servers)
    loads = {oss.name: oss for view in views for oss in view.osses}
    rows = [(now - received_s, loads.get(report.oss), report) for report, received_s in servers.values()]
    yield from _servers(rows)


def figures(mdsd: Mdsd) -> Iterator[Family]:
    """mdsd's own."""
    allocating, book, gate = mdsd.allocating, mdsd.book, mdsd.gate
    promises, stripes = book.ledger.numbers()
    yield counters("mdsd_answers", "Answered allocation requests.", "status", dict(allocating.answers))
    yield gauge("mdsd_requests_waiting", "Allocation requests in the queue.", len(allocating.waiting))
    yield gauge("mdsd_requests_waiting_bytes", "Memory of the queue.", allocating.waiting.bytes)
    yield histogram(
        "mdsd_allocation_seconds", "Time of the allocation policy for a batch.", allocating.seconds
    )
    yield histogram("mdsd_batch_requests", "Requests that are allocated together.", allocating.batches)
    yield gauge("mdsd_parts", "Parts that are on.", len([*mdsd.parts.live]))
    yield gauge(
        "mdsd_parts_failed",
        "Parts that failed, and are off until the next start.",
        len(mdsd.parts.live.failed),
    )
    yield counter("mdsd_part_messages_refused", "Messages to parts that none takes.", mdsd.parts.refused)
    for of_part in mdsd.parts.live.each(lambda part: list(part.families())).values():
        yield from of_part
    yield gauge("mdsd_stopped", "1 while the site's stop file is there.", bool(mdsd.site.why))
    yield gauge("mdsd_gate_open", "1 while allocations may run.", not gate.why_closed())
    yield gauge("mdsd_cpu_load_ratio", "Busy share of this node's processors.", gate.cpu_load)
    yield gauge(
        "mdsd_memory_load_ratio", "Share of this node's memory in use, page cache apart.", gate.memory_load
    )
    yield gauge("mdsd_promises", "Allocations with promises in the ledger.", promises)
    yield gauge("mdsd_promised_stripes", "Stripes promised in the ledger.", stripes)
    yield counter("mdsd_told_promises", "Promises taken over from leaders of running steps.", allocating.told)
    yield counter("mdsd_dead_steps", "Job steps that stopped sending signs of life.", mdsd.dead_steps)
    yield gauge("mdsd_kept_replies", "Answers kept in case a request is sent again.", len(book.answered))
    yield gauge("mdsd_kept_reply_bytes", "Memory of these answers.", book.answered.bytes)
    sockets = {"statistics": mdsd.subscriber.counts, "requests": mdsd.replier.counts}
    yield from of_sockets("mdsd", sockets)


def _targets(views: Sequence[SystemView], details: Sequence[Mapping[int, Details]]) -> Iterator[Family]:
    of_ost = {name: Family("gauge", f"target_{name}", text, TARGET) for name, text in _OF_OST}
    unusable = Family(
        "gauge",
        "target_unusable",
        "1 for each reason why no new objects are created here.",
        (*TARGET, "reason"),
    )
    unwell = Family(
        "gauge",
        "target_unwell",
        "1 for an OST with a problem; the label is the word that top shows.",
        (*TARGET, "health"),
    )
    for view, of_fs in zip(views, details, strict=True):
        for ost in view.osts:
            labels = ("ost", target_name(view.fs_name, ost.index), view.fs_name)
            detail = of_fs.get(ost.index)
            for name, value in _values(ost, detail.moved if detail else UNKNOWN):
                of_ost[name].samples[labels] = value
            for reason in _reasons(ost):
                unusable.samples[*labels, reason] = 1
            if ost.verdict.amiss:
                unwell.samples[*labels, ost.verdict] = 1
    yield from of_ost.values()
    yield unusable
    yield unwell


def _values(ost: Ost, moved: Moved) -> Iterator[tuple[str, float]]:
    yield "size_bytes", ost.total_bytes
    if ost.total_bytes:
        yield "used_ratio", 1 - ost.free_bytes / ost.total_bytes
    yield "available_bytes", ost.avail_bytes
    yield "promised_bytes", ost.promised_bytes
    yield "usable", ost.usable
    if ost.relative_speed is not None:
        yield "relative_speed_ratio", ost.relative_speed
        yield "slow_score_ratio", ost.slow_score
    if ost.own_relative is not None:
        yield "own_speed_ratio", ost.own_relative
    if ost.write_bytes_per_s is not None:
        yield "write_speed_bytes_per_second", ost.write_bytes_per_s
    if moved.writing_bytes_per_s is not None:
        yield "writing_bytes_per_second", moved.writing_bytes_per_s
    if moved.reading_bytes_per_s is not None:
        yield "reading_bytes_per_second", moved.reading_bytes_per_s
    if moved.latency_s is not None:
        yield "io_seconds", moved.latency_s


def _reasons(ost: Ost) -> Iterator[str]:
    if not ost.active:
        yield "inactive"
    for reason in ("stale", "no_create", "readonly"):
        if getattr(ost, reason):
            yield reason
    if ost.health:
        yield ost.health.partition(":")[0]


def _servers(rows: Sequence[tuple[float, Oss | None, OssReport]]) -> Iterator[Family]:
    """(age of its newest report, how the view has it, that report): loads are the view's, a mean of several reports."""
    of_oss = {name: Family("gauge", f"server_{name}", text, SERVER) for name, text in _OF_OSS}
    for age_s, oss, report in rows:
        labels = ("oss", report.oss)
        if report.router is not None:
            of_oss["routed_bytes_per_second"].samples[labels] = report.router.bytes_per_s
        of_oss["report_age_seconds"].samples[labels] = age_s
        of_oss["unreadable_sources"].samples[labels] = len(report.unreadable)
        if oss is not None:
            of_oss["lnet_load_ratio"].samples[labels] = oss.lnet_load
        for name, declared in STATISTICS.items():
            by_view = name in Oss.__struct_fields__
            if oss is not None or not by_view:
                of_oss[declared.metric].samples[labels] = getattr(oss if by_view else report, name)
    yield from of_oss.values()
