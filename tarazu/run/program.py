"""Run the program as if tarazu were not there: its streams, its signals, its exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

from tarazu import signals
from tarazu.run.stopping import is_stopped, stop_too

LOOK_S = 1.0
"""So late at the latest a signal is noticed that reached a thread of a library's own."""

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


class Leading:
    """Of this process: takes its signals, in a thread of its own, until it ends.

    Before there is a program those that end or stop a process do that at once, and the others are kept for it. While it
    runs all are its own, but those that it got itself; when it stops, so does this process. After its end they reach
    nobody, so that the status that is handed on is always the program's.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.hurried = self.unwanted = False
        self.over = threading.Event()
        """The program has ended, or nobody takes signals any more."""
        self._starting = False
        self._early: list[int] = []
        self._stopped = False
        self._lock = threading.Lock()
        threading.Thread(target=self._take_each, name="tarazu-signals", daemon=True).start()

    def start(self, argv: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Raises OSError as execve would."""
        with self._lock:
            self._starting = True
            signals.outlive()
        with signals.as_given():
            # Python ignores SIGPIPE and SIGXFSZ for itself; restore_signals gives the program the defaults.
            process = subprocess.Popen(
                list(argv),
                env=dict(environ),
                close_fds=False,
                restore_signals=True,
                preexec_fn=_ignore_children if signals.children_ignored else None,  # noqa: PLW1509
            )
        with self._lock:
            self.process = process
            for number in self._early:
                self._send(number)
        os.kill(os.getpid(), signal.SIGCHLD)  # the program's own may have come too early
        return process

    def _take_each(self) -> None:
        try:
            while True:
                info = signal.sigtimedwait(signals.TAKEN, LOOK_S)
                signals.again()
                with self._lock:
                    if info:
                        self._take(info)
                    if self.process and not self.over.is_set():
                        self._look(self.process)
        finally:
            self.over.set()

    def _take(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in signals.ENDING:
            self.hurried = True
            self.unwanted = self.over.is_set()
        if number == signal.SIGCHLD or self.over.is_set():
            return
        if self.process:
            if not (signals.has_it(info, self.process.pid) or self._is_back(number)):
                self._send(number)
        elif self._starting or number not in signals.ENDING | signals.STOPPING:
            self._early.append(number)
        else:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
            signal.raise_signal(number)
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    def _is_back(self, number: int) -> bool:
        """It continued this process, and the program has been continued without it."""
        if number != signal.SIGCONT or not self._stopped:
            return False
        self._stopped = False
        return self.process is not None and not is_stopped(self.process.pid)

    def _send(self, number: int) -> None:
        if self.process:
            with contextlib.suppress(OSError):
                os.kill(self.process.pid, number)

    def _look(self, process: subprocess.Popen[bytes]) -> None:
        """What has become of the program since."""
        while True:
            try:
                pid, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                pid, status = process.pid, 0
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._stopped = stop_too(os.WSTOPSIG(status), process.pid)
            elif not os.WIFCONTINUED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                self.over.set()
                return


def _ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


_leading: Leading | None = None


def hold_signals() -> Leading:
    """From now on a program is to be led: signals that are not meant to end this process wait for it."""
    global _leading
    if _leading is None:
        signals.hold()
        _leading = Leading()
    return _leading


class StartedProgram:
    """A started program. Signals that reach the leader go to it.

    The leader stays until the program has ended and its own work is done.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        """Raises OSError as execve would. In the main thread."""
        self._leading = hold_signals()
        self._process = self._leading.start(argv, environ)
        self._failed = False

    @property
    def hurried(self) -> bool:
        """Somebody wants the job to end, or it failed: no time for what can be done without."""
        return self._failed or self._leading.hurried

    @property
    def unwanted(self) -> bool:
        """Somebody wants the leader to end, for the program has ended already."""
        return self._leading.unwanted

    def wait(self) -> int:
        """Wait for the end; the status as `subprocess` gives it."""
        self._leading.over.wait()
        status = self._process.wait()
        self._failed = status != 0  # maybe a node has died
        return status


def end_like(status: int) -> int:
    """An exit status for `sys.exit`; a program that died of a signal makes the leader die of it too."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    number = -status
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(ImportError):  # tarazu was uninstalled while the program ran
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.raise_signal(number)
    return 128 + number


def status_of_error(error: OSError) -> int:
    """127 for a program that is not there, 126 for one that cannot be run, as `env` has it."""
    return 127 if isinstance(error, FileNotFoundError) else 126
