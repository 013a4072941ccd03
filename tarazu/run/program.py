"""Run the program as if tarazu were not there: its streams, its signals, its exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

FORWARDED = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGWINCH,
    signal.SIGALRM,
)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends these to the whole foreground group; sent to the leader alone they are passed on too."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, *FROM_TERMINAL)


_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python sets LC_CTYPE to in the C locale (PEP 538), for itself and for all that it starts."""


def restore_environment() -> None:
    """Makes `os.environ` what the user gave: without the LC_CTYPE that Python itself may have set."""
    now = os.environ.get("LC_CTYPE")
    if now not in _COERCED:
        return
    try:
        with open("/proc/self/environ", "rb") as file:
            given = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
    except OSError:
        return
    before = given.get(b"LC_CTYPE")
    if before is None:
        del os.environ["LC_CTYPE"]
    else:
        os.environ["LC_CTYPE"] = os.fsdecode(before)


def become(argv: Sequence[str], by: str = "tarazu run") -> int:
    """Turns this process into the program; a status where that fails, which is said."""
    restore_environment()
    # Python ignores them for itself, and exec keeps that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        print(f"{by}: {argv[0]}: {error.strerror}", file=sys.stderr)
        return status_of_error(error)


class StartedProgram:
    """A started program. Signals that reach the leader go to it.

    The leader stays until the program has ended and its own work is done: signals that come after the end reach
    nobody, so that the status that it hands on is always the program's.
    """

    hurried = False
    """Somebody wants the job to end, or it failed: no time for what can be done without."""
    unwanted = False
    """Somebody wants the leader to end, for the program has ended already."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        """Raises OSError as execve would."""
        handlers = {number: signal.getsignal(number) for number in (*FORWARDED, *FROM_TERMINAL)}
        self._restore = {s: handler for s, handler in handlers.items() if handler is not signal.SIG_IGN}
        self._early: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None
        for number in self._restore:
            signal.signal(number, self._forward)
        try:
            # Python ignores SIGPIPE and SIGXFSZ for itself; restore_signals gives the program the defaults.
            self._process = subprocess.Popen(
                list(argv), env=dict(environ), close_fds=False, restore_signals=True
            )
        except BaseException:
            for number, handler in self._restore.items():
                signal.signal(number, handler)
            raise
        for early in self._early:
            self._forward(early, None)

    def _forward(self, number: int, _frame: object) -> None:
        if number in _ENDING:
            self.hurried = True
            self.unwanted = self._process is not None and self._process.returncode is not None
        if self._process is None:
            self._early.append(number)
        elif self._process.returncode is None:
            if number in FROM_TERMINAL and _sent_by_terminal():
                return
            with contextlib.suppress(OSError):
                self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end; the status as `subprocess` gives it."""
        assert self._process is not None
        return self._process.wait()


def _sent_by_terminal() -> bool:
    """True when the leader is in the terminal's foreground group, so that the program got the signal too."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def end_like(status: int) -> int:
    """An exit status for `sys.exit`; a program that died of a signal makes the leader die of it too."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    number = -status
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(ImportError):  # tarazu was uninstalled while the program ran
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.kill(os.getpid(), number)
    return 128 + number


def status_of_error(error: OSError) -> int:
    """127 for a program that is not there, 126 for one that cannot be run, as `env` has it."""
    return 127 if isinstance(error, FileNotFoundError) else 126
