"""A terminal that shows lines and gives keys: only lines that changed are written, and all is as it was afterwards."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import TracebackType

from tarazu.cli.top.screen import Line

COLOURS = {"title": "1", "head": "7", "dim": "2", "good": "32", "busy": "36", "warn": "33", "bad": "1;31"}
NO_COLOURS = {"title": "1", "head": "7", "dim": "2", "bad": "1"}
"""Where NO_COLOR is set (no-color.org)."""
SORTED = "7;1;4"

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""The alternate screen, no cursor, lines cut at the edge; and back."""
_NAMED = {
    "[A": "up",
    "[B": "down",
    "OA": "up",
    "OB": "down",
    "[5~": "page-up",
    "[6~": "page-down",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
}
_PLAIN = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace"}
ESCAPE_S = 0.05
"""What belongs to an escape sequence comes within so long; an Esc alone is followed by nothing."""


class Terminal:
    """Of standard input and output; `with` it. However it ends, the terminal is as it was."""

    def __init__(self, descriptor: int | None = None, out: int | None = None) -> None:
        self._in = sys.stdin.fileno() if descriptor is None else descriptor
        self._out = sys.stdout.fileno() if out is None else out
        self._shown: list[str] = []
        self._size = (0, 0)
        self._before: list[object] | None = None
        self._waker, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._styles = NO_COLOURS if os.environ.get("NO_COLOR") else COLOURS
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> Terminal:
        self._before = termios.tcgetattr(self._in)
        for number, handler in (
            (signal.SIGWINCH, lambda *_: self.wake()),
            (signal.SIGTERM, _stop),
            (signal.SIGHUP, _stop),
            (signal.SIGTSTP, self._suspend),
        ):
            self._handlers[number] = signal.signal(number, handler)
        self._begin()
        return self

    def _begin(self) -> None:
        tty.setcbreak(self._in, termios.TCSADRAIN)
        self._write(_ENTER)
        self._shown = []

    def _end(self) -> None:
        self._write(_LEAVE)
        if self._before is not None:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
            self._end()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._wake)
        os.close(self._waker)

    def _suspend(self, *_: object) -> None:
        """Ctrl-Z: the shell gets its terminal back, and `fg` the screen."""
        self._end()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        signal.signal(signal.SIGTSTP, self._suspend)
        self._begin()
        self.wake()

    def wake(self) -> None:
        """End a `keys` that waits; from any thread, and from handlers of signals."""
        with contextlib.suppress(OSError):
            os.write(self._wake, b"!")

    @property
    def size(self) -> tuple[int, int]:
        """(columns, lines) now."""
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return (found.columns or 80, found.lines or 24)

    def show(self, lines: Sequence[Line]) -> None:
        """These lines from the top; nothing below them."""
        size = self.size
        parts: list[str] = []
        if size != self._size:
            parts.append("\x1b[2J")
            self._size, self._shown = size, []
        texts = [self._text(line) for line in lines[: size[1]]]
        for n, text in enumerate(texts):
            if n >= len(self._shown) or self._shown[n] != text:
                parts.append(f"\x1b[{n + 1};1H{text}\x1b[0m\x1b[K")
        if len(texts) < len(self._shown):
            parts.append(f"\x1b[{len(texts) + 1};1H\x1b[J")
        self._shown = texts
        if parts:
            self._write("".join(parts))

    def _text(self, line: Line) -> str:
        found = []
        for text, style in line:
            code = SORTED if style == "head sorted" else self._styles.get(style, "")
            found.append(f"\x1b[0;{code}m{text}" if code else f"\x1b[0m{text}")
        return "".join(found)

    def _write(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "replace"))
        while data:
            data = data[os.write(self._out, data) :]

    def keys(self, timeout_s: float | None) -> Iterator[str]:
        """Keys that were pressed, as `choice.press` takes them; none after `timeout_s`, a `wake`, a change of size."""
        ready = select.select([self._in, self._waker], [], [], timeout_s)[0]
        if self._waker in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._waker, 1024)
        if self._in in ready:
            yield from split(self._read())

    def _read(self) -> str:
        data = os.read(self._in, 1024)
        if not data:
            raise EOFError
        while data.endswith((b"\x1b", b"\x1b[", b"\x1bO")) and select.select([self._in], [], [], ESCAPE_S)[0]:
            more = os.read(self._in, 1024)
            if not more:
                break
            data += more
        return data.decode("utf-8", "replace")


def split(text: str) -> Iterator[str]:
    """Characters, and names of keys that send several; sequences of unknown keys are passed over."""
    while text:
        if text[0] != "\x1b":
            yield _PLAIN.get(text[0], text[0])
            text = text[1:]
            continue
        length = _length(text)
        if length == 1:
            yield "escape"
        elif text[1:length] in _NAMED:
            yield _NAMED[text[1:length]]
        text = text[length:]


def _length(text: str) -> int:
    """Of the sequence that begins with an escape character."""
    if text[1:2] == "O":
        return min(3, len(text))
    if text[1:2] == "[":
        end = next((n for n, c in enumerate(text[2:], 2) if "@" <= c <= "~"), len(text) - 1)
        return end + 1
    return 1


def _stop(*_: object) -> None:
    raise KeyboardInterrupt
