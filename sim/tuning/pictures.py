"""The online evaluation's pictures: what figures 6, 7, 8 and 10 of the paper show, and disks that are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tarazu.sim.requests.situation import WINDOWS
from tarazu.sim.tuning.change import BEFORE_S, Course
from tarazu.sim.tuning.control import OURS, PAPER
from tarazu.sim.tuning.evaluate import Again, Compared, Found
from tarazu.sim.tuning.online import Ran, trend
from tarazu.sim.tuning.svg import AXIS, BEST, PAPERS, WORST, Panel, drawing, text
from tarazu.sim.tuning.svg import OURS as OUR_COLOUR

WIDTH = 860.0
SHOWN_S = 480
"""Of the windows: at the beginning, and at the end."""
COLOURS = {PAPER.name: PAPERS, OURS.name: OUR_COLOUR}


def pictures(found: Found) -> dict[str, str]:
    """File name → SVG."""
    made = {"tuning-online.svg": _applications(found)}
    if found.again:
        made["tuning-change.svg"] = _changes(found)
    return made


def _key(y: float) -> list[str]:
    parts, x = [], 52.0
    for words, colour in ((PAPER.name, PAPERS), (OURS.name, OUR_COLOUR)):
        parts += [f"<circle cx='{x:.0f}' cy='{y - 4:.0f}' r='4' fill='{colour}'/>", text(x + 9, y, words)]
        x += 120
    for words, colour in (("best window alone", BEST), ("worst window alone", WORST)):
        parts += [
            f"<path d='M{x:.0f} {y - 4:.0f}h22' stroke='{colour}' stroke-width='1.5' stroke-dasharray='5 4'/>",
            text(x + 28, y, words),
        ]
        x += 170
    return parts


def _applications(found: Found) -> str:
    parts, y = _key(18), 24.0
    for name in dict.fromkeys(phase.application for phase in found.phases):
        phases = [phase for phase in found.phases if phase.application == name]
        wide = WIDTH / len(phases)
        for place, phase in enumerate(phases):
            parts += _times(phase, (place * wide, y), (wide, 190.0))
        y += 200
        ours = [one for one in found.ran if one.case.application == name and one.case.manner == OURS]
        if ours and name == "F":
            parts += _windows(ours[0], y)
            parts += _values(ours[0], y + 200)
            y += 400
    return drawing(WIDTH, y, "Online: times of runs, windows and estimates while the council learns", parts)


def _times(phase: Compared, at: tuple[float, float], size: tuple[float, float]) -> list[str]:
    """As figures 6 and 10: each run, and the straight line through them."""
    shown = {name: phase.times_s[name] for name in COLOURS if name in phase.times_s}
    most = max(*phase.alone_s, *(max(times) for times in shown.values())) * 1.05
    least = min(*phase.alone_s, *(min(times) for times in shown.values())) * 0.9
    runs = max(len(times) for times in shown.values())
    panel = Panel(
        at, size, (0, runs + 1), (least, most), f"{phase.application}, {phase.phase}: seconds", "run"
    )
    panel.ticks(
        [(value, f"{value:.0f}") for value in (least, (least + most) / 2, most)],
        [(1, "1"), (runs, f"{runs}")],
    )
    for name, times in shown.items():
        panel.dots(list(enumerate(times, 1)), COLOURS[name])
        first, last = trend(times)
        panel.line([(1, first), (len(times), last)], COLOURS[name], "stroke-width='2'")
    panel.level(phase.alone_s[phase.best], BEST, WINDOWS[phase.best])
    panel.level(phase.alone_s[phase.worst], WORST, WINDOWS[phase.worst])
    return panel.parts


def _windows(ran: Ran, y: float) -> list[str]:
    """As figure 7."""
    parts = []
    end = ran.steps[-1].second
    spans = ((0.0, min(SHOWN_S, end)), (max(0.0, end - SHOWN_S), end))
    for place, (begin, until) in enumerate(spans):
        title = f"Windows, ours: {'first' if not place else 'last'} {until - begin:.0f} s"
        panel = Panel(
            (place * WIDTH / 2, y), (WIDTH / 2, 190.0), (begin, until), (-0.3, len(WINDOWS) - 0.7), title, "s"
        )
        panel.ticks(
            [(n, name) for n, name in enumerate(WINDOWS)], [(begin, f"{begin:.0f}"), (until, f"{until:.0f}")]
        )
        for begins in ran.begins_s:
            for at in begins:
                if begin < at < until:
                    panel.upright(at)
        steps = [step for step in ran.steps if begin < step.second <= until]
        points = [
            point
            for step in steps
            for point in ((max(begin, step.second - 1), step.window), (step.second, step.window))
        ]
        panel.line(points, OUR_COLOUR, "stroke-width='1.2'")
        parts += panel.parts
    return parts


def _values(ran: Ran, y: float) -> list[str]:
    """As figure 8: what is believed at the end, with its interval."""
    parts = []
    for place, operation in enumerate(("write", "read")):
        rows = [row for row in ran.learned if row["pattern"].startswith(operation)]
        if not rows:
            continue
        most = max(row["high"] or row["bytes_per_s"] for row in rows) / 1e6 * 1.05
        title = f"Believed at the end, ours, {operation}: MB/s of a node"
        panel = Panel(
            (place * WIDTH / 2, y), (WIDTH / 2, 190.0), (-0.5, len(rows) - 0.5), (0.0, max(most, 1e-3)), title
        )
        panel.ticks([(0, "0"), (most, f"{most:.0f}")], [(n, row["value"]) for n, row in enumerate(rows)])
        for n, row in enumerate(rows):
            if row["seen"]:
                colour = BEST if row["best"] else AXIS
                high = row["high"] if row["high"] is not None else row["bytes_per_s"]
                panel.line([(n, row["low"] / 1e6), (n, high / 1e6)], colour, "stroke-width='3' opacity='0.6'")
                panel.dots([(n, row["bytes_per_s"] / 1e6)], colour, 4)
        parts += panel.parts
    return parts


def _changes(found: Found) -> str:
    parts = _key(18)
    for place, one in enumerate(found.again):
        parts += _change(one, found.courses, 24.0 + 220 * place)
    return drawing(WIDTH, 24 + 220 * len(found.again), "Disks are replaced by others: bytes a second", parts)


def _change(one: Again, courses: Sequence[Course], y: float) -> list[str]:
    here = [course for course in courses if course.case.to == one.to and course.case.manner]
    most = max(max(course.bytes_per_s) for course in here) / 1e6 * 1.05
    seconds = min(len(course.bytes_per_s) for course in here)
    best = max(one.alone, key=lambda window: one.alone[window])
    worst = min(one.alone, key=lambda window: one.alone[window])
    title = f"All disks are replaced by {one.to} ones: MB/s, median of {len(one.found_s[OURS.name])} runs"
    panel = Panel((0.0, y), (WIDTH, 210.0), (0, seconds), (0.0, most), title, "s")
    panel.ticks(
        [(0, "0"), (most, f"{most:.0f}")], [(0, "0"), (BEFORE_S, f"{BEFORE_S}"), (seconds, f"{seconds}")]
    )
    panel.upright(BEFORE_S)
    for name, colour in COLOURS.items():
        of = [course.bytes_per_s for course in here if course.case.manner and course.case.manner.name == name]
        if of:
            medians = [median(rates[second] for rates in of) / 1e6 for second in range(seconds)]
            panel.line(list(enumerate(medians)), colour, "stroke-width='1.4'")
    after = seconds - BEFORE_S
    for window, colour in ((best, BEST), (worst, WORST)):
        rate = one.alone[window] / 1e6
        panel.line(
            [(BEFORE_S, rate), (BEFORE_S + after, rate)], colour, "stroke-width='1.3' stroke-dasharray='5 4'"
        )
        panel.parts.append(
            text(panel.at_x(seconds), panel.at_y(rate) - 4, WINDOWS[window], 11, colour, "text-anchor='end'")
        )
    return panel.parts
