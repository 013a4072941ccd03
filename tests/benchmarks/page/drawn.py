"""450 servers of 8 OSTs in a headless Chromium: from the first byte of the answer to the frame that shows them.

On a busy machine the time on the clock is that of the others, too. So there is beside it what the thread that draws the
page worked itself, from the event that it starts with to the frame, as Chromium's own trace has it.
"""

from __future__ import annotations

import time
from statistics import median

from tests import browser
from tests.benchmarks.figure import Figure
from tests.browser import Browser
from tests.parts.page import sample

GOAL_MS = 100.0
FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
OPENED = f"""{FRAME}.then((drawn) => {{
  const answer = performance.getEntriesByType("navigation")[0];
  return drawn - answer.responseStart; }})"""
RENEWED = f"""(() => {{
  const began = performance.now();
  return renew().then(() => {FRAME}).then((drawn) => drawn - began); }})()"""


def measure(short: bool) -> list[Figure]:
    if not browser.program():
        print("  no Chromium is installed")
        return []
    times = 5 if short else 15
    of = sample.system(450, 8)
    figures = []
    with (
        browser.browser() as chromium,
        sample.past_of(of) as kept,
        sample.served(of, sample.history(), kept=kept) as (url, pages),
    ):
        began = time.thread_time()
        page = pages.get("/")
        made_ms = 1e3 * (time.thread_time() - began)
        assert page is not None and page.packed is not None
        figures.append(Figure("made by the daemon, once for all who look, CPU", made_ms, "ms"))
        figures.append(Figure("the page, compressed", len(page.packed) / 1e3, "kB"))
        for name, width, height, phone in (("desk", 1200, 900, False), ("phone", 390, 844, True)):
            for dark in (False, True):
                chromium.view(width, height, phone=phone, dark=dark)
                what = f"{'dark' if dark else 'light'}, on a {name}"
                work = [_worked(chromium, url) for _ in range(times)]
                took = [_opened(chromium, url) for _ in range(times)]
                figures.append(
                    Figure(f"{what}: the drawing thread's own time, median", median(work), "ms", goal=GOAL_MS)
                )
                figures.append(Figure(f"{what}: on the clock, median", median(took), "ms", goal=GOAL_MS))
                figures.append(Figure(f"{what}: on the clock, least", min(took), "ms"))
        chromium.view(1200, 900)
        chromium.open(url)
        renewed = [float(chromium.ask(RENEWED)) for _ in range(times)]
        figures.append(Figure("renewed, asked for and drawn, on the clock: median", median(renewed), "ms"))
        one = [_worked(chromium, f"{url}/osts/scratch-OST0000") for _ in range(times)]
        figures.append(Figure("an OST's own page: the drawing thread's own time, median", median(one), "ms"))
    return figures


def _opened(chromium: Browser, url: str) -> float:
    _blank(chromium)
    chromium.open(url)
    return float(chromium.ask(OPENED))


def _worked(chromium: Browser, url: str) -> float:
    """Of the thread that took in the page."""
    _blank(chromium)

    def draw() -> None:
        chromium.open(url)
        chromium.ask(FRAME)

    events = [event for event in chromium.traced(draw) if "tdur" in event]
    longest = max((e for e in events if e["name"] == "ParseHTML"), key=lambda e: e["dur"])
    thread = longest["pid"], longest["tid"]
    tasks = [e for e in events if e["name"] == "RunTask" and (e["pid"], e["tid"]) == thread]
    return sum(e["tdur"] for e in tasks) / 1e3


def _blank(chromium: Browser) -> None:
    chromium.open("about:blank")
    chromium.ask(FRAME)
