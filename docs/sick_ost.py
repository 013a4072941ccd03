"""Draws `docs/sick-ost.svg`: when each OST of a real job was done, as logged and as tarazu places the same files."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from tarazu import drawing
from tarazu.sim import badost

PICTURE = Path(__file__).with_name("sick-ost.svg")
HEALTHY, SICK = "#4c8bd6", "#e0524a"


def draw(plt: Any, study: badost.BadOstStudy) -> Any:
    """Two panels of one scale, a bar for each OST as long as its writing takes."""
    sick = max(study.rows, key=lambda row: row.logged_s)
    colours = [SICK if row is sick else HEALTHY for row in study.rows]
    osts = [row.ost for row in study.rows]
    total = sum(row.logged_bytes for row in study.rows)
    before, after = (100 * of / total for of in (sick.logged_bytes, sick.tarazu_bytes))
    figure, (logged, ours) = plt.subplots(2, 1, figsize=(8.6, 4.6), sharex=True, layout="constrained")
    logged.barh(osts, [row.logged_s for row in study.rows], color=colours)
    logged.set_title(f"Lustre's allocator, as logged: {study.logged_s:.0f} s", loc="left", color=SICK)
    speed = sick.write_bytes_per_s / 1e6
    logged.text(
        study.logged_s, sick.ost - 3, f"OST {sick.ost} writes {speed:.0f} MB/s: the job waits", ha="right"
    )
    ours.barh(osts, [row.tarazu_s for row in study.rows], color=colours)
    title = f"tarazu, the same files: {median(study.tarazu_s):.1f} s, modelled at the speeds in the log"
    ours.set_title(title, loc="left", color=HEALTHY)
    ours.axvline(study.bound_s, linestyle=":", color="#8a939e")
    ours.text(
        study.bound_s + 10, 8, f"the bound: no placement of these files ends before {study.bound_s:.1f} s"
    )
    relieved = f"OST {sick.ost} gets {after:.2f} % of the bytes instead of {before:.1f} %"
    ours.text(study.bound_s + 10, sick.ost, relieved, va="center")
    ours.set_xlabel("seconds")
    for axes in (logged, ours):
        axes.invert_yaxis()
        axes.set_ylabel("OST")
        axes.grid(visible=False, axis="y")
    return figure


def main() -> None:
    study = badost.study()
    ours_s = median(study.tarazu_s)
    title = f"One sick OST of {len(study.rows)}: {study.logged_s:.0f} s as logged, {ours_s:.1f} s with tarazu"
    PICTURE.write_text(drawing.svg(drawing.pyplot(), title, lambda plt: draw(plt, study)))
    print(f"{PICTURE}: drawn")


if __name__ == "__main__":
    main()
