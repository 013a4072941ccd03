"""A study as one HTML file that needs nothing else: text, tables, pictures; readable on a phone and in the dark."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from tarazu.drawing import Picture, document, figure
from tarazu.errors import Unavailable
from tarazu.sim.study.case import fingerprint
from tarazu.sim.study.cases import ScenarioCase
from tarazu.sim.study.plots import pictures
from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.scenario import ScenarioFile, seeds_of
from tarazu.sim.study.summary import Summary, baseline_of, gain_text, summaries
from tarazu.units import human_bytes

PACKAGES = ("tarazu", "numpy", "simpy", "msgspec", "ortools", "networkx")


def write(
    file: ScenarioFile, cases: Sequence[ScenarioCase], rows: Sequence[ScenarioRow], folder: Path
) -> Path:
    """`report.html` in `folder`, and each picture beside it as PNG. Without matplotlib the pictures are left out."""
    try:
        drawn, notes = pictures(rows, file.scenario)
    except Unavailable as error:
        drawn, notes = [], [str(error)]
    for old in folder.glob("*.png"):
        old.unlink()
    for picture in drawn:
        (folder / f"{picture.name}.png").write_bytes(picture.light)
    path = folder / "report.html"
    path.write_text(page(file, cases, rows, drawn, notes))
    return path


def page(
    file: ScenarioFile,
    cases: Sequence[ScenarioCase],
    rows: Sequence[ScenarioRow],
    drawn: Sequence[Picture],
    notes: Sequence[str],
) -> str:
    scenario = file.scenario
    lines = summaries(rows)
    parts = [
        f"<h1>{escape(scenario.name)}</h1>",
        _paragraphs(scenario.description),
        _what(file, cases, rows),
        _warnings(cases, rows, notes),
        *(figure(picture) for picture in drawn),
        "<h2>Means over seeds</h2>",
        f"<p class=quiet>Gains are over {escape(baseline_of(scenario.policies))} with the same seed, with 95 % "
        "intervals (Student's t); an interval that holds 0 is no gain.</p>",
        table(HEADER, (cells(line) for line in lines), left=3),
        "<h2>Cluster</h2>",
        _clusters(cases),
        "<h2>Scenario</h2>",
        f"<p class=quiet>{escape(str(file.path.name))}</p><pre>{escape(file.text)}</pre>",
        "<h2>Made with</h2>",
        table(("what", "version"), versions(), left=2),
    ]
    return document(scenario.name, parts)


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip())


def _what(file: ScenarioFile, cases: Sequence[ScenarioCase], rows: Sequence[ScenarioRow]) -> str:
    seeds = ", ".join(map(str, seeds_of(file.scenario)))
    counted = f"{len(cases)} cases, {len(rows)} rows (rows.jsonl); seeds {seeds}"
    return f"<p class=quiet>{escape(counted)}</p>"


def _warnings(cases: Sequence[ScenarioCase], rows: Sequence[ScenarioRow], notes: Sequence[str]) -> str:
    warnings = [
        f"Stand-in data: {text}." for text in dict.fromkeys(row.stand_in for row in rows if row.stand_in)
    ]
    warnings += [f"Assumed: {text}." for text in dict.fromkeys(row.assumed for row in rows if row.assumed)]
    missing = len(cases) - len({row.case for row in rows})
    if missing:
        warnings.append(
            f"{missing} of {len(cases)} cases have no row: the study was interrupted, or they failed."
        )
    warnings += [f"No result: {text}" for text in dict.fromkeys(row.error for row in rows if row.error)]
    warnings += [f"Left out: {note}." for note in notes]
    return "".join(f"<p class=warning>{escape(text)}</p>" for text in warnings)


HEADER = (
    *("swept", "layout", "policy", "read, GB/s", "gain", "write, GB/s", "gain", "OST cost", "bound"),
    *("completion, s", "speedup", "seeds"),
)


def cells(line: Summary) -> tuple[str, ...]:
    """One combination as text, for the report and the terminal."""
    seeds = f"{line.seeds} ({line.failed} failed)" if line.failed else str(line.seeds)
    return (
        ", ".join(f"{key} = {value}" for key, value in line.sweep),
        line.layout,
        line.policy,
        interval(line.read.mean / 1e9, line.read.half / 1e9),
        gain_text(line.read_gain),
        interval(line.write.mean / 1e9, line.write.half / 1e9),
        gain_text(line.write_gain),
        interval(line.ost_cost.mean, line.ost_cost.half, 3),
        f"{line.ost_cost_bound:.3f}",
        interval(line.completion_s.mean, line.completion_s.half),
        gain_text(line.speedup),
        seeds,
    )


def interval(mean: float, half: float, digits: int = 2) -> str:
    if math.isnan(mean):
        return "-"
    return f"{mean:.{digits}f}" if math.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(header: Sequence[str], lines: Iterable[Sequence[object]], left: int = 1) -> str:
    def row(tag: str, values: Sequence[object]) -> str:
        marked = (
            f"<{tag}{' class=left' if place < left else ''}>{escape(str(value))}</{tag}>"
            for place, value in enumerate(values)
        )
        return f"<tr>{''.join(marked)}</tr>"

    return f"<div class=wide><table>{row('th', header)}{''.join(row('td', line) for line in lines)}</table></div>"


def _clusters(cases: Sequence[ScenarioCase]) -> str:
    specs = list({case.cluster: None for case in cases})
    fields = [field.name for field in msgspec.structs.fields(type(specs[0]))]
    rows = []
    for name in fields:
        values = list(dict.fromkeys(_value(name, getattr(spec, name)) for spec in specs))
        rows.append((name, ", ".join(values)))
    return table(("field", "value"), rows, left=2)


def _value(name: str, value: object) -> str:
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        return "; ".join(f"{key} {_value(key, inner)}" for key, inner in fields.items())
    if name.endswith("bytes_per_s") and isinstance(value, (int, float)):
        return f"{value / 1e6:,.6g} MB/s"
    if name.endswith("bytes") and isinstance(value, (int, float)):
        return human_bytes(value)
    if isinstance(value, tuple):
        return (
            "all alike" if not value else f"{len(value)} values, repeated" if len(value) > 8 else str(value)
        )
    return f"{value:,.10g}" if isinstance(value, (int, float)) else str(value)


def versions() -> list[tuple[str, str]]:
    """What a result was made with."""
    software = [("Python", platform.python_version()), ("source code of the simulator", fingerprint())]
    for name in PACKAGES:
        try:
            software.append((name, version(name)))
        except PackageNotFoundError:
            software.append((name, "not installed"))
    return software
