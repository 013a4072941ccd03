"""A real terminal (a pty): what is written to it, which keys come from it, and that it is as before afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Iterator

import pytest

from tarazu.cli.top.screen import Line, Span
from tarazu.cli.top.terminal import Terminal, split

LINES: list[Line] = [[Span("one", "bad"), Span(" ok")], [Span("two")], [Span("three")]]


class Pty:
    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.resize(80, 24)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def written(self) -> str:
        found = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                found += os.read(self.master, 1 << 16)
        return found.decode()


@pytest.fixture
def bed() -> Iterator[Pty]:
    bed = Pty()
    yield bed
    os.close(bed.master)
    os.close(bed.slave)


def test_only_lines_that_changed_are_written(bed: Pty) -> None:
    with Terminal(bed.slave, bed.slave) as terminal:
        terminal.show(LINES)
        first = bed.written()
        assert "\x1b[?1049h" in first and "\x1b[1;1H\x1b[0;1;31mone\x1b[0m ok" in first and "three" in first
        terminal.show(LINES)
        assert bed.written() == ""
        terminal.show([LINES[0], [Span("other")], LINES[2]])
        assert bed.written() == "\x1b[2;1H\x1b[0mother\x1b[0m\x1b[K"
        terminal.show(LINES[:1])
        assert bed.written() == "\x1b[2;1H\x1b[J"
        bed.resize(40, 10)
        assert terminal.size == (40, 10)
        terminal.show(LINES[:1])
        assert bed.written().startswith("\x1b[2J\x1b[1;1H")
    assert bed.written().endswith("\x1b[?1049l")


def test_the_terminal_is_as_before_also_after_an_error(bed: Pty) -> None:
    before, handler = termios.tcgetattr(bed.slave), signal.getsignal(signal.SIGWINCH)
    with pytest.raises(RuntimeError), Terminal(bed.slave, bed.slave):
        assert termios.tcgetattr(bed.slave) != before
        raise RuntimeError
    assert termios.tcgetattr(bed.slave) == before
    assert signal.getsignal(signal.SIGWINCH) is handler
    assert "\x1b[?25h" in bed.written()


def test_keys_come_as_they_are_pressed_and_waiting_ends_when_it_is_woken(bed: Pty) -> None:
    with Terminal(bed.slave, bed.slave) as terminal:
        os.write(bed.master, b"q\x1b[A\x1b[6~\r")
        assert list(terminal.keys(5.0)) == ["q", "up", "page-down", "enter"]
        os.write(bed.master, b"\x1b")
        assert list(terminal.keys(5.0)) == ["escape"]
        terminal.wake()
        assert list(terminal.keys(5.0)) == []
        os.kill(os.getpid(), signal.SIGWINCH)
        assert list(terminal.keys(5.0)) == []
        assert list(terminal.keys(0.0)) == []


def test_without_colours_where_they_are_not_wanted(bed: Pty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal(bed.slave, bed.slave) as terminal:
        bed.written()
        terminal.show([[Span("x", "warn"), Span("y", "bad")]])
        assert "\x1b[0mx\x1b[0;1my" in bed.written()


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b[A\x1bOB\x1b[H\x1b[4~", ["up", "down", "home", "end"]),
        ("a\x7fé\x1b", ["a", "backspace", "é", "escape"]),
        ("\x1b[1;5Cx\x1b[99~y\x1b[", ["x", "y"]),
        ("\x1b\x1b[B", ["escape", "down"]),
        ("", []),
    ],
)
def test_what_keys_send(sent: str, keys: list[str]) -> None:
    assert list(split(sent)) == keys
