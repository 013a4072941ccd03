"""A command once on each node of a job step.

What is started runs beside the job and must not disturb it: its streams are its own, its time and output are limited,
and a node that is dead delays nobody longer than that.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import BinaryIO, NamedTuple

import msgspec

from tarazu import signals
from tarazu.guard import Guard

BESIDE = "TARAZU_BESIDE"
"""In the environment of what is started here: it ends when the leader is killed."""
STOP_S = 1.0
"""For a launcher that is told to stop, before it is killed."""

_LOOK_S = 0.2
_DISTURBING = (
    r"(TARAZU_|LD_PRELOAD$|HYDRA_PREPEND|I_MPI_(PREPEND|OUTFILE|ERRFILE)"
    r"|SLURM_(LABELIO|STD(IN|OUT|ERR)MODE|UNBUFFEREDIO|OPEN_MODE|TASK_PROLOG|TASK_EPILOG|PROLOG|EPILOG|EXPORT_ENV"
    r"|DISTRIBUTION|HINT|CPU_BIND|MEM_BIND|EXCLUSIVE|EXACT|WHOLE|THREADS_PER_CORE|CPUS_PER_TASK|NTASKS|NPROCS"
    r"|TASKS_PER_NODE|HOSTFILE|DEPENDENCY|MPI_TYPE|MEM_PER_|GPUS|GRES|TRES|WAIT)|SRUN_|SSH_ASKPASS"
    r"|OMPI_MCA_(orte|prte)_(tag|timestamp|xml|output)|OMPI_MCA_rmaps_|OMPI_MCA_mca_base_env_list)"
)
"""Settings of the user for his own program that would change what comes back, or where it runs."""


class EachNode(msgspec.Struct, frozen=True):
    """What goes before a command that is to run once on each node."""

    prefix: tuple[str, ...]
    hosts: tuple[str, ...]
    """As the launcher or the batch system names them, maybe folded; empty: not known."""
    feeds_all: bool = False
    """Every copy gets the standard input."""
    answers: bool = True
    """Standard output comes back."""

    @property
    def launcher(self) -> str:
        return PurePath(self.prefix[0]).name


class CommandLimits(NamedTuple):
    """What the command may take."""

    seconds: float
    most_bytes: int
    """Of standard output."""
    unwanted: Callable[[], bool] = bool
    """Asked now and then: is it to be given up?"""
    wait_for_stop: bool = True


def quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the user's settings for the program's own run, and without tarazu's; nor does the site's
    task prolog record what runs with it.
    """
    return {k: v for k, v in environ.items() if not re.match(_DISTURBING, k)} | {"TARAZU_DISABLE": "1"}


def run(
    each: EachNode,
    command: Sequence[str],
    environ: Mapping[str, str],
    take: Callable[[bytes], None],
    limits: CommandLimits,
    feed: BinaryIO | None = None,
) -> str:
    """Run `command` once on each node; `take` gets the lines of standard output, none longer than 8 KiB.

    Returns what went wrong, empty for nothing. A launcher that has not ended within the limits is stopped, which takes
    up to twice STOP_S, waited for or not.
    """
    ends_at = time.monotonic() + limits.seconds
    prefix = list(each.prefix)
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    environ = quiet(environ) | {BESIDE: mark}
    try:
        guard = Guard(BESIDE, mark)
    except OSError as error:
        return f"{each.launcher}: {error}"
    try:
        return _run(each, prefix, command, environ, take, limits, feed, ends_at)
    finally:
        guard.leave()


def _run(
    each: EachNode,
    prefix: list[str],
    command: Sequence[str],
    environ: Mapping[str, str],
    take: Callable[[bytes], None],
    limits: CommandLimits,
    feed: BinaryIO | None,
    ends_at: float,
) -> str:
    while True:
        try:
            with signals.as_given():
                process = subprocess.Popen(
                    [*prefix, *command],
                    env=environ,
                    stdin=feed or subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,  # what the terminal sends to the job is not meant for it
                )
        except OSError as error:
            return f"{each.launcher}: {error}"
        try:
            problem, said = _read(process, take, ends_at, limits)
            if not problem:
                try:
                    process.wait(max(0.1, ends_at - time.monotonic()))
                except subprocess.TimeoutExpired:
                    problem = "it did not end in time"
        finally:
            stopping = threading.Thread(target=_stop, args=(process,))
            stopping.start()
            if limits.wait_for_stop or process.poll() is not None:
                stopping.join()
        if not problem and process.returncode:
            problem = f"ended with status {process.returncode}: {_telling_line(said)}"
        if "--overlap" in prefix and "unrecognized option" in problem and "overlap" in problem:
            prefix.remove("--overlap")
            if feed:
                feed.seek(0)
            continue
        return f"{each.launcher}: {problem}" if problem else ""


def _read(
    process: subprocess.Popen[bytes], take: Callable[[bytes], None], ends_at: float, limits: CommandLimits
) -> tuple[str, bytes]:
    """(what went wrong, the beginning of standard error) of a process that is read to its end."""
    assert process.stdout and process.stderr
    begun, errors, count = b"", b"", 0
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left_s = ends_at - time.monotonic()
            if left_s <= 0:
                return "not finished in time", errors
            if limits.unwanted():
                return "given up at a signal", errors
            for key, _ in selector.select(min(left_s, _LOOK_S)):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors = (errors + data)[:4096]
                else:
                    count += len(data)
                    if count > limits.most_bytes:
                        return f"more than {limits.most_bytes >> 20} MiB came", errors
                    *lines, begun = (begun + data).split(b"\n")
                    begun = begun[:8192]
                    for line in lines:
                        take(line)
    if begun:
        take(begun)
    return "", errors


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it stays: it is asked to end, for a launcher knows its daemons, and killed when it does not."""
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)


def _telling_line(text: bytes) -> str:
    """The first line that says something; launchers frame theirs with dashes."""
    lines = (line.strip() for line in os.fsdecode(text).splitlines())
    return next((line for line in lines if re.search(r"\w", line)), "no message")
