"""A leader stops when its program stops, for who waits for the leader: a shell's Ctrl-Z, `fg` and `bg`."""

from __future__ import annotations

import os
import signal

from tarazu import signals

WATCH = """
of() { read -r line < "/proc/$1/stat" || return 1; line=${line##*) }; state=${line%% *}; }
while of "$2"; do
    leader=$state
    of "$1" || state=Z
    case $state$leader in TT | tT) ;; ?T) kill -CONT "$2" ;; esac
    sleep 0.2
done 2>/dev/null
"""
"""A stopped leader hears of nothing: this continues it when its program runs on or has ended without it. Arguments: the
program, the leader.
"""


def stop_too(number: int, program: int) -> bool:
    """Stop this process as the program was stopped, until it is continued. True where SIGCONT has come or will come for
    both. For the thread that takes signals.
    """
    if signal.SIGCONT in signal.sigpending():
        return True
    import subprocess  # slow to import, and few programs are stopped

    try:
        with signals.as_given(
            but=signals.STOPPING
        ):  # the terminal's, which stopped the program, may wait here
            watch = subprocess.Popen(
                ["/bin/sh", "-c", WATCH, "sh", str(program), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,  # what stops the leader does not stop it
            )
    except OSError:
        return False  # a leader that nobody would continue does not stop
    try:
        signal.raise_signal(
            number
        )  # while it is blocked: one from the terminal may wait too, and SIGCONT ends both
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        signal.pthread_sigmask(signal.SIG_BLOCK, {number} & signals.TAKEN)
    finally:
        watch.kill()
        watch.wait()
    return True


def is_stopped(pid: int) -> bool:
    return signals.stat_of(pid)[:1] == ["T"]
