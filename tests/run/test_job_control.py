"""At a terminal: keys, a window's new size and a closed window reach a program once; Ctrl-Z, `fg` and `bg` work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.signalled import COUNTS, DIES, LED, defaults, goes_on, state, stops
from tests.waiting import LONG_S, until


class Terminal:
    """A process in a terminal of its own, the leader of its session."""

    def __init__(self, *words: str) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            defaults()
            os.execvp(words[0], words)
        self._before, self._shown = b"", b""

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def shows(self, text: str) -> str:
        """What it has shown up to this and with it; what comes later is for the next call."""
        deadline = time.monotonic() + LONG_S
        while text.encode() not in self._shown:
            assert select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0], (
                self._before + self._shown
            )
            self._shown += os.read(self._fd, 4096)
        before, _, self._shown = self._shown.partition(text.encode())
        self._before += before + text.encode()
        return before.decode() + text

    def number(self) -> int:
        """The line that comes next, one of digits."""
        return int(self.shows("\n").replace("^C", "").replace("^\\", ""))

    def resize(self) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def end(self) -> None:
        self.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def terminal(*words: str) -> Iterator[Terminal]:
    made = Terminal(*words)
    try:
        yield made
    finally:
        made.end()


def in_shell(words: tuple[str, ...], more: str = "") -> tuple[str, ...]:
    """Of a shell that runs it in the foreground, as a script does."""
    return ("sh", "-c", f"trap : INT QUIT HUP; {shlex.join(words)} {more}; echo status $?")


def ready(shown: Terminal, led: bool = True) -> int:
    """Both are, or the program alone; its pid."""
    said, pid = "", None
    while not (pid and (not led or "led\r" in said)):
        said += shown.shows("\n")
        pid = re.search(r"ready (\d+)\r", said)
    return int(pid[1])


@pytest.mark.parametrize("more", ["", "</dev/null"])
def test_a_key_reaches_the_program_once(more: str) -> None:
    """Where its input was a file a program got each Ctrl-C twice: `mpirun` then kills its ranks at once."""
    with terminal(*in_shell((*LED, *COUNTS), more)) as shown:
        pid = ready(shown)
        for key, number in (("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)):
            shown.type(key)
            assert shown.number() == number
        shown.resize()
        assert shown.number() == signal.SIGWINCH
        os.kill(pid, signal.SIGUSR2)
        assert shown.shows("status 0").split() == ["status", "0"]


def test_kill_reaches_a_program_in_the_foreground() -> None:
    """`kill -INT` of the leader was taken for the terminal's Ctrl-C, of which the program has its own."""
    with terminal(*in_shell((*LED, *COUNTS))) as shown:
        pid = ready(shown)
        leader = parent(pid)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGHUP):
            os.kill(leader, number)
            assert shown.number() == number
        os.kill(leader, signal.SIGUSR2)
        assert shown.shows("status 0").split() == ["status", "0"]


def parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def test_a_program_in_a_window_of_its_own_hears_that_the_window_is_closed() -> None:
    """The kernel tells the session's leader alone, which `tarazu run` is there."""
    with terminal(*LED, *DIES) as shown:
        pid = ready(shown)
        shown.close()
        until(lambda: state(pid) == "", lambda: state(pid))


@contextlib.contextmanager
def shell(folder: Path, program: str) -> Iterator[Terminal]:
    """An interactive one; `./job` in it is the program with its leader."""
    job = folder / "job"
    job.write_text(f"#!/bin/sh\nexec {shlex.join((*LED, 'sh', '-c', program))}\n")
    job.chmod(0o755)
    with terminal("bash", "--norc", "--noprofile", "-i") as shown:
        shown.type(f"cd {folder}; stty -echo; PS1='prompt''> '\n")
        shown.shows("prompt> ")
        yield shown


def test_ctrl_z_and_fg_work_in_a_shell(tmp_path: Path) -> None:
    program = "trap 'echo got int; exit 3' INT; echo ready $$; while :; do read x; done"
    with shell(tmp_path, program) as shown:
        shown.type("./job\n")
        pid = ready(shown)
        for _ in range(2):
            shown.type("\x1a")
            assert "Stopped" in shown.shows("prompt> ")
            stops(pid, parent(pid))
            shown.type("fg\n")
            goes_on(pid, parent(pid))
        shown.type("\x03")
        shown.shows("got int")
        shown.shows("prompt> ")
        shown.type("echo status $?\n")
        shown.shows("status 3")


def test_what_reads_the_terminal_in_the_background_stops_and_is_shown_as_stopped(tmp_path: Path) -> None:
    with shell(tmp_path, "echo ready $$; read x; echo it is $x") as shown:
        shown.type("./job &\n")
        pid = ready(shown, led=False)  # its leader may be stopped before it says so
        stops(pid, parent(pid))
        shown.type("jobs\n")
        shown.shows("Stopped")
        shown.type("fg\n")
        goes_on(pid, parent(pid))
        shown.type("word\n")
        shown.shows("it is word")


def test_a_stopped_job_ends_with_its_shell(tmp_path: Path) -> None:
    """It is continued and told that the terminal is gone."""
    with shell(tmp_path, "echo ready $$; exec sleep infinity") as shown:
        shown.type("./job\n")
        pid = ready(shown)
        leader = parent(pid)
        shown.type("\x1a")
        shown.shows("prompt> ")
        os.kill(shown.pid, signal.SIGKILL)
        until(lambda: {state(pid), state(leader)} <= {"", "Z"}, lambda: (state(pid), state(leader)))
