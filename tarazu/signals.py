"""Signals of a process that leads a program: all that can be caught are the program's.

They are blocked in all threads; one takes them, one after the other, with who sent them (`tarazu.run.program`). What
else the process starts gets the mask that its user gave: `as_given`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

TAKEN = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
STOPPING = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
ENDING = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT})
FAULTS = frozenset(
    {
        signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT,
    }
)  # fmt: skip
"""A fault of this process itself ends it, blocked or not; a handler would return to it for ever."""
FROM_TERMINAL = STOPPING | {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCONT, signal.SIGWINCH}
"""The kernel sends these to a whole process group."""
_SI_KERNEL, _SI_USER, _SI_TKILL = 0x80, 0, -6
"""asm-generic/siginfo.h"""
_MOST_PARENTS = 64

_given: set[int] | None = None
"""The mask before."""
_came: tuple[int, int] = (-1, -1)
"""A pipe: numbers of signals that came while a thread did not block them."""
children_ignored = False
"""The user's SIGCHLD is ignored; here it must not be, for then no child has a status."""


def hold() -> None:
    """Block them all, in this thread and in those that it starts. Those that end and stop a process get no handler.

    For the main thread, once.
    """
    global _given, _came, children_ignored
    _came = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(_came[1], warn_on_full_buffer=False)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    children_ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    signal.signal(signal.SIGCHLD, _noted)
    _catch(TAKEN - FAULTS - STOPPING - ENDING)
    _given = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)


def outlive() -> None:
    """From now on those that end a process do not end this one, wherever they come."""
    _catch(ENDING)


def _catch(numbers: frozenset[signal.Signals | int]) -> None:
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # whatever is started inherits that
            signal.signal(number, _noted)


def _noted(_number: int, _frame: object) -> None:
    """It is in the pipe."""


@contextlib.contextmanager
def as_given(but: frozenset[signal.Signals] = frozenset()) -> Iterator[None]:
    """For what this thread starts; `but` stay blocked. Those that reach it are handed to the thread that takes them."""
    if _given is None:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_SETMASK, _given | but)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        again()


def again() -> None:
    """Send this process what a thread got that did not block it."""
    with contextlib.suppress(BlockingIOError):
        for number in os.read(_came[0], 4096):
            os.kill(os.getpid(), number)


def has_it(info: signal.struct_siginfo, program: int) -> bool:
    """True when who sent it to this process sent it to the program too, or it is no matter of the program's."""
    number, code = info.si_signo, info.si_code
    if code == _SI_KERNEL and number == signal.SIGXCPU:
        return True  # each has its own limit
    if code == _SI_KERNEL and number in FROM_TERMINAL:
        # A terminal that is gone tells its session's leader alone.
        return not (number in (signal.SIGHUP, signal.SIGCONT) and os.getsid(0) == os.getpid())
    return code in (_SI_USER, _SI_TKILL) and _descends(info.si_pid, program)  # `kill 0`


def _descends(pid: int, program: int) -> bool:
    for _ in range(_MOST_PARENTS):
        if pid == program:
            return True
        fields = stat_of(pid)
        if pid <= 1 or not fields:
            return False
        pid = int(fields[1])
    return False


def stat_of(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; none where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []
