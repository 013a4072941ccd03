"""Draws `docs/top.svg`: what `tarazu top` shows of a made-up system of 3,600 OSTs with a few that are not well.

The picture is the screen's own text in its own colours, on a ground as terminals have it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from tarazu.cli.top.choice import TopChoice
from tarazu.cli.top.screen import Line, screen
from tarazu.wire.overview import Overview, overview

PICTURE = Path(__file__).with_name("top.svg")
COLUMNS, LINES = 128, 32
TAKEN_S = 1_700_000_000.0
GROUND, TEXT, HEAD = "#16191d", "#c9ced6", "#39424e"
INK = {
    "title": "#ffffff",
    "dim": "#8b949e",
    "good": "#57ab5a",
    "busy": "#39c5cf",
    "warn": "#d29922",
    "bad": "#f47067",
}
BOLD = {"title", "bad", "head sorted"}
FONT = "font-family='ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace'"
WIDE, HIGH, SIZE, EDGE = 7.8, 17.0, 13, 12
TIB = 1 << 40


@cache
def example(osts: int = 3600, per_oss: int = 20) -> Overview:
    """A system with a job on some OSTs, one pool that fills up, and one OST or two of each verdict."""
    chance = random.Random(15)
    names = [f"oss{n:03d}" for n in range(-(-osts // per_oss))]
    silent = names[len(names) // 3]
    osses = {name: _oss(chance, silent=name == silent) for name in names}
    rows, amiss = [], {}
    for index in range(osts):
        row = _ost(chance, index, names[index // per_oss], osts)
        if row["oss"] == silent:
            row.update(stale=True, writing_bytes_per_s=None, reading_bytes_per_s=None, latency_s=None)
        rows.append(row)
    special: dict[int, dict[str, Any]] = {
        osts // 9: {"relative_speed": 0.24, "latency_s": 0.41},
        osts // 7: {"health": "dead: DISCONN", "usable": False, "writing_bytes_per_s": 0.0},
        osts // 5: {"avail_bytes": 0, "free_bytes": TIB // 50},
        osts // 4: {"degraded": True},
        2 * osts // 3: {"relative_speed": 0.62},
        osts // 2: {"excluded": True, "health": "excluded: mdsd.exclude", "usable": False},
    }
    for index, of in special.items():
        rows[index].update(of)
    since_s = TAKEN_S - 420
    amiss[str(osts // 9)] = {"health": "sick", "why": "0.24 of its peers' speed", "since_s": since_s}
    amiss[str(osts // 7)] = {"health": "dead", "why": "DISCONN", "since_s": since_s}
    status = {
        "osses": osses,
        "file_systems": {"scratch": {"osts": rows, "health": amiss}},
        "requests": {"promises": 37},
        "mds": {"operations_per_s": {"scratch-MDT0000": {"open": 812.0, "close": 790.0}}},
    }
    return overview(status, TAKEN_S)


def _oss(chance: random.Random, *, silent: bool) -> dict[str, Any]:
    return {
        "age_s": 340.0 if silent else chance.uniform(1, 59),
        "stale": silent,
        "interval_s": 60.0,
        "cpu_load": chance.uniform(0.05, 0.4),
        "memory_load": chance.uniform(0.2, 0.5),
        "lnet_bytes_per_s": 1e9,
        "queue_wait_s": 0.001,
    }


def _ost(chance: random.Random, index: int, oss: str, osts: int) -> dict[str, Any]:
    share = min(0.97, max(0.05, chance.gauss(0.62 if index < osts * 0.8 else 0.81, 0.04)))
    busy = osts * 0.45 < index < osts * 0.55
    total = 100 * TIB
    return {
        "index": index,
        "oss": oss,
        "total_bytes": total,
        "free_bytes": int(total * (1 - share)),
        "avail_bytes": int(total * (1 - share) * 0.95),
        "usable": True,
        "promised_bytes": int(chance.uniform(10, 90)) << 30 if busy else 0,
        "pools": ["disk" if index < osts * 0.8 else "flash"],
        "relative_speed": 1.0,
        "writing_bytes_per_s": chance.uniform(180e6, 420e6) if busy else chance.expovariate(1 / 9e6),
        "reading_bytes_per_s": chance.expovariate(1 / 5e6),
        "latency_s": chance.uniform(0.008, 0.03) if busy else chance.uniform(0.004, 0.01),
    }


def picture(lines: Sequence[Line], title: str) -> str:
    """The SVG: every span at its place, as wide as its characters."""
    width, height = COLUMNS * WIDE + 2 * EDGE, len(lines) * HIGH + 2 * EDGE
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' {FONT} "
        f"font-size='{SIZE}' role='img'>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{width:g}' height='{height:g}' rx='8' fill='{GROUND}'/>",
        *(part for n, line in enumerate(lines) for part in _drawn(line, EDGE + n * HIGH)),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _drawn(line: Line, top: float) -> Iterable[str]:
    column = 0
    for text, style in line:
        x, length = EDGE + column * WIDE, len(text) * WIDE
        if style.startswith("head"):
            yield f"<rect x='{x:.1f}' y='{top:.1f}' width='{length:.1f}' height='{HIGH:g}' fill='{HEAD}'/>"
        if text.strip():
            weight = " font-weight='600'" if style in BOLD else ""
            yield (
                f"<text x='{x:.1f}' y='{top + HIGH - 4.5:.1f}' textLength='{length:.1f}' "
                f"lengthAdjust='spacingAndGlyphs' xml:space='preserve' fill='{INK.get(style, TEXT)}'{weight}>"
                f"{escape(text)}</text>"
            )
        column += len(text)


def drawn() -> str:
    """The picture of the example, whatever the time zone."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    found = screen(example(), TopChoice(), COLUMNS, LINES, every_s=2.0)
    return picture(found.lines, "tarazu top: 3,600 OSTs of a made-up system, worst first")


def main() -> int:
    PICTURE.write_text(drawn())
    print(f"{PICTURE}: drawn")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
