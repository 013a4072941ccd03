"""A real terminal (a pty): what is drawn on it, which keys come from it, and that it is as before afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 300.0
SHOW = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("pictured", sys.argv[1])
pictured = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictured)
from tarazu.cli.top import watching
from tarazu.cli.top.choice import TopChoice
sys.exit(watching.watch(pictured.example, TopChoice(), 0.2, plain=True))
"""
KEYS = """
import curses, sys
from tarazu.cli.top import watching
def keys(window):
    curses.set_escdelay(50)
    window.timeout(100)
    names = []
    window.addstr("ready")
    while "q" not in names:
        if key := watching._key(window):
            names.append(key)
    return names
print(curses.wrapper(keys))
"""
DOCS = Path(__file__).parents[3] / "docs" / "top.py"


class Top:
    """`tarazu top` on a terminal of its own, of the system that the docs' picture shows."""

    def __init__(self, program: str = SHOW, **environ: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:  # pragma: no cover - another process
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
            environ = {"TERM": "xterm-256color", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environ}
            os.execve(sys.executable, [sys.executable, "-c", program, str(DOCS)], environ)
        self.before = termios.tcgetattr(self.master)
        self.status: int | None = None

    def wait_for(self, text: str) -> str:
        """All that came until `text` did."""
        deadline, seen = time.monotonic() + PATIENCE_S, ""
        while text not in seen:
            assert select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0], seen[
                -2000:
            ]
            seen += os.read(self.master, 1 << 16).decode(errors="replace")
        return seen

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def ended(self) -> int:
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


@pytest.fixture
def start() -> Iterator[Callable[..., Top]]:
    tops: list[Top] = []

    def started(*program: str, **environ: str) -> Top:
        tops.append(Top(*program, **environ))
        return tops[-1]

    yield started
    for top in tops:
        if top.status is None:
            os.kill(top.pid, signal.SIGKILL)
            top.ended()
        with contextlib.suppress(OSError):
            os.close(top.master)


def test_keys_sort_move_filter_and_end_it_and_the_terminal_is_as_before(start: Callable[..., Top]) -> None:
    top = start()
    assert "\x1b[?1049h" in top.wait_for("? help")
    assert termios.tcgetattr(top.master) != top.before
    for keys, text in {
        "?": "the other way round",
        "x": "verdict",
        "/nobody\x7fY": "Enter: take it",
        "\r": "0 of 0",
        "\x1b": "of 3581",
        "c": "CPU ",
    }.items():
        top.press(keys)
        top.wait_for(text)
    top.press("q")
    top.wait_for("\x1b[?1049l")
    assert top.ended() == 0 and termios.tcgetattr(top.master) == top.before


def test_what_keys_are_called(start: Callable[..., Top]) -> None:
    top = start(KEYS)
    top.wait_for("ready")
    top.press("\x1bOA\x1bOB\x1b[5~\x1b[6~\x1bOH\x1bOF\r\x7f\x15é")
    top.press("\x1b")
    time.sleep(0.2)
    top.press("\x1b[20~q")
    words = "up down page-up page-down home end enter backspace".split()
    top.wait_for(str([*words, "\x15", "é", "escape", "q"]))


def test_another_size_is_drawn_anew(start: Callable[..., Top]) -> None:
    top = start()
    top.wait_for("pause")
    top.resize(60, 12)
    assert "pause" not in top.wait_for("? help  q quit")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_gives_the_terminal_back(start: Callable[..., Top], number: int) -> None:
    top = start()
    top.wait_for("? help")
    os.kill(top.pid, number)
    top.wait_for("\x1b[?1049l")
    top.ended()
    assert termios.tcgetattr(top.master) == top.before


def test_it_ends_with_its_terminal(start: Callable[..., Top]) -> None:
    top = start()
    top.wait_for("? help")
    os.close(top.master)
    top.ended()


def test_colours_where_they_are_wanted(start: Callable[..., Top]) -> None:
    red = "\x1b[31m"
    assert red in start().wait_for("? help")
    assert red not in start(NO_COLOR="1").wait_for("? help")
    assert red not in start(TERM="vt100").wait_for("? help")
