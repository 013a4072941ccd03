"""Draws `docs/sick-ost.svg`: when each OST of a real job was done, as logged and as tarazu places the same files.

The colours are read on a light and on a dark page: the picture has no background of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tarazu.sim import badost

PICTURE = Path(__file__).with_name("sick-ost.svg")
TEXT, HEALTHY, SICK, LINE = "#7a838e", "#4c8bd6", "#e0524a", "#8a939e"
WIDTH, LEFT, RIGHT = 860, 64, 40
BAR, STEP, HEAD = 4, 6, 44
FONT = "font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif'"


def picture(study: badost.BadOstStudy) -> str:
    """The SVG: two panels of one scale, a bar for each OST as long as its writing takes."""
    full_s = study.logged_s
    ours_s = median(study.tarazu_s)
    sick = max(study.rows, key=lambda row: row.logged_s)
    panel = HEAD + STEP * len(study.rows)
    height = 2 * panel + 50

    def x(seconds: float) -> float:
        return LEFT + seconds / full_s * (WIDTH - LEFT - RIGHT)

    def text(at: float, y: float, words: str, size: int = 13, fill: str = TEXT, more: str = "") -> str:
        return f"<text x='{at:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' {more}>{words}</text>"

    def bars(top: float, seconds: Sequence[float]) -> list[str]:
        return [
            f"<rect x='{LEFT}' y='{top + STEP * n}' width='{x(s) - LEFT:.1f}' height='{BAR}' rx='2' "
            f"fill='{SICK if row.ost == sick.ost else HEALTHY}'/>"
            for n, (row, s) in enumerate(zip(study.rows, seconds, strict=True))
        ]

    first, second = HEAD, panel + HEAD + 10
    sick_y = STEP * study.rows.index(sick) + BAR
    total = sum(row.logged_bytes for row in study.rows)
    before, after = (100 * of / total for of in (sick.logged_bytes, sick.tarazu_bytes))
    relieved = f"OST {sick.ost} gets {after:.2f} % of the bytes instead of {before:.1f} %"
    bound = f"the bound: no placement of these files ends before {study.bound_s:.1f} s"
    others = sorted(row.write_bytes_per_s / 1e6 for row in study.rows if row.ost != sick.ost)
    speeds = f"{sick.write_bytes_per_s / 1e6:.0f} MB/s, the others {others[0]:,.0f} to {others[-1]:,.0f}"
    waiting = f"OST {sick.ost} writes {speeds}: the whole job waits for it"
    modelled = "<tspan font-size='13' font-weight='400'>modelled at the speeds that the log shows</tspan>"
    bold = "font-weight='600'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' {FONT} role='img'>",
        f"<title>One sick OST of {len(study.rows)}: {full_s:.0f} s as logged, {ours_s:.1f} s with tarazu</title>",
        text(LEFT, 26, f"Lustre's allocator, as logged: {full_s:.0f} s", 17, SICK, bold),
        *bars(first, [row.logged_s for row in study.rows]),
        text(x(full_s), first + sick_y - 10, waiting, 13, TEXT, "text-anchor='end'"),
        text(LEFT, panel + 36, f"tarazu, the same files: {ours_s:.1f} s  {modelled}", 17, HEALTHY, bold),
        *bars(second, [row.tarazu_s for row in study.rows]),
        f"<line x1='{x(study.bound_s):.1f}' y1='{second - 4}' x2='{x(study.bound_s):.1f}' "
        f"y2='{second + STEP * len(study.rows) + 2}' stroke='{LINE}' stroke-dasharray='3 3'/>",
        text(x(study.bound_s) + 10, second + STEP * 11, bound),
        text(x(study.bound_s) + 10, second + sick_y + 8, relieved),
    ]  # fmt: skip
    axis = second + STEP * len(study.rows) + 12
    parts.append(f"<line x1='{LEFT}' y1='{axis}' x2='{x(full_s):.1f}' y2='{axis}' stroke='{LINE}'/>")
    for seconds in range(0, int(full_s) + 1, 100):
        middle = "text-anchor='middle'"
        parts.append(text(x(seconds), axis + 18, f"{seconds} s" if seconds else "0", 12, TEXT, middle))
    for top in (first, second):
        parts.append(text(LEFT - 8, top + BAR + 3, "OST 0", 10, TEXT, "text-anchor='end'"))
        last = top + STEP * (len(study.rows) - 1) + BAR + 3
        parts.append(text(LEFT - 8, last, str(study.rows[-1].ost), 10, TEXT, "text-anchor='end'"))
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    PICTURE.write_text(picture(badost.study()))
    print(f"{PICTURE}: drawn")


if __name__ == "__main__":
    main()
