"""From a site's files to what is said of them: the work of `tarazu change bursts report`."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import msgspec
import numpy as np

from tarazu import config, durable
from tarazu.batch.jobs import Job
from tarazu.batch.jobs import read as read_jobs
from tarazu.cli.output import Progress
from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.names import shown
from tarazu.parts.bursts.burstd import here
from tarazu.parts.bursts.commands import report_text
from tarazu.parts.bursts.mapping.simple import round_robin
from tarazu.parts.bursts.measures.characteristics import Thresholds
from tarazu.parts.bursts.measures.day import Period, analyse, intervals_csv, jobs_csv
from tarazu.parts.bursts.measures.report import Report
from tarazu.parts.bursts.settings import options_of
from tarazu.parts.bursts.traffic import days, machine_file
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

DAY_S = 86_400.0
QUIET_S = 600.0
"""For so long after the last traffic it is believed that nobody moved anything."""


class ReportOptions(msgspec.Struct, frozen=True):
    """As the options say; None: the settings', and the last days of what is there."""

    traffic: Path | None = None
    jobs: Path | None = None
    machine: Path | None = None
    days: int | None = None
    usual_days: int = 7
    """Where nothing is said of days."""
    first_s: float | None = None
    """The first day's beginning."""
    last_s: float | None = None
    """The last day's beginning."""


def measured(settings: config.Settings, wanted: ReportOptions) -> Period:
    """What the options ask for. Raises TarazuError."""
    traffic = wanted.traffic or here.traffic(settings)
    span = days.span(traffic)
    if span is None:
        expected = "expected traffic, which tarazu-burstd puts there"
        raise Unavailable(f"{traffic}: {expected}; found none")
    start_s, end_s = _period(wanted, span)
    chunks = days.read(traffic, start_s, end_s)
    first = next(chunks, None)
    if first is None:
        raise Unavailable(
            f"{traffic}: expected traffic of {_text(start_s)} to {_text(end_s)} UTC, found none"
        )
    machine = _machine(settings, wanted, first)
    jobs, gaps = _jobs(settings, wanted, start_s, end_s)
    with Progress() as progress:
        return analyse(
            itertools.chain([first], chunks),
            jobs,
            machine,
            (start_s, end_s),
            mappings=mappings(machine),
            gaps=gaps,
            limits=limits(settings),
            progress=lambda done: progress(f"{100 * done:.0f} % of the traffic"),
        )


def mappings(machine: Machine) -> Mapping[str, Numbers]:
    """What is there, and what the paper puts in its place."""
    by_name = {"present": machine.served_by}
    if len(machine.io_nodes) > 1:
        served = machine.served_by >= 0
        by_name["round-robin"] = np.full(len(served), -1, np.int32)
        by_name["round-robin"][served] = round_robin(int(served.sum()), len(machine.io_nodes))
    return by_name


def write(found: Report, period: Period, folder: Path, limits: Thresholds) -> None:
    """As a page with pictures (none without matplotlib, which the page says), as JSON and CSV. Raises StoreError."""
    from tarazu.drawing import document, figure
    from tarazu.parts.bursts.measures.pictures import pictures

    drawn, note = [], ""
    try:
        with Progress() as progress:
            drawn = pictures(period, limits, progress)
    except Unavailable as error:
        note = f"<p class=warning>{escape(str(error))}</p>"
    text = "\n".join(report_text.lines(found, len(found.applications)))
    parts = ["<h1>Spatial bursts</h1>", note, f"<pre>{escape(text)}</pre>", *map(figure, drawn)]
    page = document("Spatial bursts", parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in drawn:
            durable.replace(folder / f"{picture.name}.png", picture.light)
        durable.replace(folder / "intervals.csv", intervals_csv(period).encode())
        durable.replace(folder / "jobs.csv", jobs_csv(period).encode())
        durable.replace(folder / "report.json", msgspec.json.format(msgspec.json.encode(found), indent=2))
        durable.replace(folder / "report.html", page.encode())
    except OSError as error:
        raise StoreError(str(folder), "a directory that can be written", error.strerror) from None


def limits(settings: config.Settings) -> Thresholds:
    return Thresholds(intensive=options_of(settings).intensive)


def _period(wanted: ReportOptions, span: tuple[float, float]) -> tuple[float, float]:
    """Whole days, as far as there is traffic: jobs before its first interval, and long after its last, would look as if
    they had moved nothing. What is still to come is no part of it.
    """
    if wanted.first_s is not None and wanted.last_s is not None and wanted.days is not None:
        raise BadInput("--days", "either --from or --to with it", "both")
    span = span[0], min(span[1], time.time())  # a clock that was ahead may have written days to come
    length = DAY_S * (wanted.days or wanted.usual_days)
    last_s = wanted.last_s if wanted.last_s is not None else (span[1] - 1) // DAY_S * DAY_S
    if wanted.first_s is not None and wanted.days is not None:
        last_s = wanted.first_s + length - DAY_S
    end_s = last_s + DAY_S
    start_s = end_s - length if wanted.first_s is None else wanted.first_s
    if not (start_s < min(end_s, span[1]) and end_s > span[0]):
        there = f"days from {_text(span[0])} to {_text(span[1])} UTC"
        raise BadInput("--from, --to", there, f"{_text(start_s)} to {_text(end_s)}")
    quiet_until_s = max(span[1], min(span[1] + QUIET_S, time.time()))
    return max(start_s, span[0]), min(end_s, quiet_until_s)


def _machine(settings: config.Settings, wanted: ReportOptions, traffic: Traffic) -> Machine:
    """Where nobody knows it, all that there is are the nodes' names."""
    machine = machine_file.read(wanted.machine) if wanted.machine else here.machine(settings)
    if machine is not None:
        return machine
    nowhere = np.full(len(traffic.nodes), -1, np.int32)
    return Machine(traffic.nodes, (), (), nowhere, nowhere)


def _jobs(
    settings: config.Settings, wanted: ReportOptions, start_s: float, end_s: float
) -> tuple[Sequence[Job], Sequence[tuple[float, float]]]:
    """Jobs, and times in which nobody counted. Traffic says much without them."""
    try:
        gaps = () if wanted.traffic else here.gaps(settings)
        if wanted.jobs is None:
            return here.jobs(settings, start_s, end_s), gaps
    except BadInput as error:
        print(shown(f"tarazu change bursts report: without jobs: {error}"), file=sys.stderr)
        return (), ()
    return read_jobs(wanted.jobs).jobs, gaps


def _text(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")
