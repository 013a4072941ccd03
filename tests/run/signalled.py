"""A program that says which signals it gets, and one that dies of them: alone, and beside a leader."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import until

LEADER = """
import os, sys
from tarazu.run.program import StartedProgram, end_like
running = StartedProgram(sys.argv[1:], os.environ)
os.write(1, b"led\\n")  # as one, beside the program's
sys.exit(end_like(running.wait()))
"""
"""Says when it has started the program."""
LED = (sys.executable, "-c", LEADER)
CAUGHT = sorted(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
"""SIGCHLD is the leader's own: it has a child, and the program may have none."""
COUNTS = (
    sys.executable,
    "-c",
    """
import os, signal
caught = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, caught)
os.write(1, b"ready %d\\n" % os.getpid())
while (number := signal.sigwait(caught)) != signal.SIGUSR2:
    print(int(number), flush=True)
""",
)
"""Says each that it gets, until SIGUSR2 ends it."""
DIES = ("sh", "-c", "echo ready $$; exec sleep infinity")


class Run:
    """`process` is the program or its leader, `pid` the program."""

    def __init__(self, process: subprocess.Popen[str], led: bool) -> None:
        self.process = process
        assert process.stdout
        self.lines = process.stdout
        said = dict(self.lines.readline().strip().partition(" ")[::2] for _ in range(1 + led))
        self.pid = int(said["ready"])


def defaults() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def started(words: tuple[str, ...], by: tuple[str, ...] = LED, **options: object) -> Iterator[Run]:
    """As in a shell's foreground, in a group of its own: what a shell starts with `&` ignores some signals, and what
    has no shell any more does not stop.
    """
    process = subprocess.Popen(
        [*by, *words],
        text=True,
        process_group=0,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "preexec_fn": defaults, **options},  # type: ignore[call-overload]
    )
    try:
        yield Run(process, led=bool(by) and "led" in by[-1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def state(pid: int) -> str:
    """`T`: stopped, `Z`: ended; empty: nothing of it is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def stops(*pids: int) -> None:
    until(lambda: all(state(pid) == "T" for pid in pids), lambda: [state(pid) for pid in pids])


def goes_on(*pids: int) -> None:
    until(lambda: all(state(pid) in ("S", "R") for pid in pids), lambda: [state(pid) for pid in pids])
