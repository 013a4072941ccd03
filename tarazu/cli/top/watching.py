"""The live screen, by curses. A thread asks for the newest overview again and again; keys are answered meanwhile."""

from __future__ import annotations

import contextlib
import curses
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

from tarazu.cli.top.choice import TopChoice, press
from tarazu.cli.top.screen import Line, Screen, fs_names, screen
from tarazu.errors import TarazuError
from tarazu.wire.overview import Overview

_NAMED: dict[str | int, str] = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_PPAGE: "page-up",
    curses.KEY_NPAGE: "page-down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    "\n": "enter",
    curses.KEY_BACKSPACE: "backspace",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x1b": "escape",
}
_COLOURS = {
    "good": curses.COLOR_GREEN,
    "busy": curses.COLOR_CYAN,
    "warn": curses.COLOR_YELLOW,
    "bad": curses.COLOR_RED,
}
_ESCAPE_MS = 50
"""What belongs to an escape sequence comes within so long; an Esc alone is followed by nothing."""
_LOOK_MS = 100
"""So soon a new overview is shown."""


def watch(ask: Callable[[], Overview], choice: TopChoice, every_s: float, *, plain: bool) -> int:
    """Until it is ended by a key, or the terminal is gone. However it ends, the terminal is as it was."""
    curses.set_escdelay(_ESCAPE_MS)
    with contextlib.suppress(EOFError):
        curses.wrapper(_watch, ask, choice, every_s, plain)
    return 0


def _watch(
    window: curses.window, ask: Callable[[], Overview], choice: TopChoice, every_s: float, plain: bool
) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(curses.error):  # not every terminal can hide its cursor
        curses.curs_set(0)
    window.timeout(_LOOK_MS)
    attributes = _attributes()
    changed = threading.Event()
    watching = Watching(ask, every_s, changed.set)
    watching.start()
    while True:
        changed.clear()
        lines, columns = window.getmaxyx()
        shown = _screen(watching, choice, (columns, lines), every_s, plain=plain)
        _draw(window, shown.lines, attributes)
        key = None
        while key is None and not changed.is_set():
            key = _key(window)
        if not key:
            continue
        if key == " " and choice.typing is None:
            watching.at_once()
        names = fs_names(watching.newest) if watching.newest else ()
        pressed = press(choice, key, shown.rows, shown.page, names)
        if pressed is None:
            watching.end()
            return
        if pressed.paused != choice.paused:
            watching.pause(pressed.paused)
        choice = pressed


def _attributes() -> dict[str, int]:
    """Style → what curses draws it with; no colours where NO_COLOR is set (no-color.org), or there are none."""
    reverse = curses.A_REVERSE
    attributes = {"title": curses.A_BOLD, "head": reverse, "dim": curses.A_DIM, "bad": curses.A_BOLD}
    attributes["head sorted"] = reverse | curses.A_BOLD | curses.A_UNDERLINE
    if curses.has_colors() and not os.environ.get("NO_COLOR"):
        curses.use_default_colors()
        for pair, (style, colour) in enumerate(_COLOURS.items(), 1):
            curses.init_pair(pair, colour, -1)
            attributes[style] = attributes.get(style, 0) | curses.color_pair(pair)
    return attributes


def _draw(window: curses.window, lines: Sequence[Line], attributes: dict[str, int]) -> None:
    window.erase()
    height, width = window.getmaxyx()
    for y, line in enumerate(lines[:height]):
        x = 0
        for text, style in line:
            with contextlib.suppress(
                curses.error
            ):  # behind the last place of the last line no cursor can stand
                window.addnstr(y, x, text, max(0, width - x), attributes.get(style, 0))
            x += len(text)
    window.refresh()


def _key(window: curses.window) -> str | None:
    """As `choice.press` takes it; None when none was pressed for a moment, empty for one without a meaning, such as
    the one that says that the size has changed. Raises EOFError.
    """
    try:
        key = window.get_wch()
    except curses.error:
        if not os.isatty(sys.stdin.fileno()):
            raise EOFError from None
        return None
    return _NAMED.get(key, key if isinstance(key, str) else "")


def _screen(
    watching: Watching, choice: TopChoice, size: tuple[int, int], every_s: float, *, plain: bool
) -> Screen:
    overview, problem = watching.newest, watching.problem
    if overview is None:
        notice = problem or "asking mdsd ..."
        return screen(
            Overview(time.time(), (), ()), choice, *size, every_s=every_s, notice=notice, plain=plain
        )
    notice = problem and f"{time.time() - overview.taken_s:.0f} s old: {problem}"
    return screen(overview, choice, *size, every_s=every_s, notice=notice, plain=plain)


class Watching:
    """`newest` is the last one that came, `problem` why there is no newer one."""

    def __init__(self, ask: Callable[[], Overview], every_s: float, changed: Callable[[], None]) -> None:
        self.newest: Overview | None = None
        self.problem = ""
        self._ask = ask
        self._every_s = every_s
        self._changed = changed
        self._wanted = threading.Event()
        self._paused = False
        self._over = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="tarazu-top", daemon=True).start()

    def pause(self, paused: bool) -> None:
        self._paused = paused
        if not paused:
            self._wanted.set()

    def at_once(self) -> None:
        self._wanted.set()

    def end(self) -> None:
        self._over = True
        self._wanted.set()

    def _run(self) -> None:
        while not self._over:
            self._wanted.clear()
            began = time.monotonic()
            try:
                self.newest, self.problem = self._ask(), ""
            except TarazuError as error:
                self.problem = str(error)
            except Exception as error:  # an invalid answer must not end the questions unnoticed
                self.problem = f"an invalid answer: {error!r}"
            if self._over:
                return
            self._changed()
            # One that answers slowly is asked less often.
            pause_s = max(self._every_s - (time.monotonic() - began), self._every_s / 10)
            self._wanted.wait(None if self._paused else pause_s)
