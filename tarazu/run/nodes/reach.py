"""Once on every node of a job step: by `srun`, by the MPI launcher of the command line, or by `pbsdsh`.

Which hosts a step has is what its launcher was told, else what the batch system's environment says. What is started
here runs beside the job and must not disturb it: its streams are its own, its time and output are limited, and a
node that is dead delays nobody longer than that.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import BinaryIO

import msgspec

from tarazu.run.command_line import batch_system, launchers

VERSION_S = 2.0
"""For a launcher to say what it is."""
STOP_S = 1.0
"""For a launcher that is told to stop, before it is killed."""

_LOOK_S = 0.2
_HOST_LISTS = frozenset("H host hosts".split())
_HOST_FILES = frozenset("hostfile machinefile f machine default-hostfile".split())
_RANK_FILES = frozenset("rf rankfile".split())
_BATCH_HOST_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")
_OTHER_HOST_FILES = ("HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PE_HOSTFILE")
"""Files that their launcher finds by itself."""
_DISTURBING = re.compile(
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


def each_node(argv: Sequence[str], environ: Mapping[str, str]) -> EachNode | None:
    """How other nodes of the step that `argv` is can be reached; None: it has none, or nobody knows how."""
    count = next((environ[n] for n in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES") if environ.get(n)), "")
    if environ.get("SLURM_JOB_ID") and count.isdecimal() and int(count) > 1 and shutil.which("srun"):
        size = (f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1")
        names = environ.get("SLURM_JOB_NODELIST", "")
        # --overlap: beside a step that holds all CPUs; before Slurm 20.11 that needed no option.
        return EachNode(
            ("srun", "--overlap", *size, "--mem=0", "--kill-on-bad-exit=0", "--cpu-bind=none"),
            (names,) if names else (),
            feeds_all=True,
        )
    line = launchers.parse(argv)
    parts = [tuple(_without(part, _RANK_FILES)) for part in line.host_options]
    chosen = [word for part in line.host_options for word in part]
    hosts, batch_file = _named_hosts(chosen), ""
    if not hosts:
        hosts, batch_file = _batch_hosts(environ)
    if not elsewhere(hosts):
        return None
    words = [word for part in dict.fromkeys(parts) for word in part]
    for launcher in [line.launcher] if line.launcher else ["mpirun", "mpiexec"]:
        match flavor(launcher):
            case "openmpi":
                if len(_given(words, _HOST_FILES)) > 1 or not (batch_file or _named_hosts(words)):
                    words = [*_without(words, _HOST_LISTS | _HOST_FILES), "--host", ",".join(hosts)]
                words += ["--hostfile", batch_file] if batch_file else []
                return EachNode((launcher, *words, "--map-by", "ppr:1:node"), hosts)
            case "hydra":
                words += ["-f", batch_file] if batch_file else []
                return EachNode((launcher, *words, "-ppn", "1", "-n", str(len(hosts))), hosts)
    if environ.get("PBS_NODEFILE") and shutil.which("pbsdsh"):
        # What it starts has the job's own output for its streams.
        return EachNode(("pbsdsh", "--"), hosts, answers=False)
    return None


def flavor(launcher: str) -> str:
    """`openmpi`, `hydra` (MPICH, MVAPICH, Intel MPI) or empty, as the launcher says of itself."""
    if not shutil.which(launcher):
        return ""
    try:
        done = subprocess.run(
            [launcher, "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=VERSION_S,
            check=False,
            env=quiet(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = done.stdout + done.stderr
    if re.search(rb"Open MPI|OpenRTE|open-mpi|PRRTE|prterun", said):
        return "openmpi"
    return "hydra" if re.search(rb"HYDRA|Intel\(R\) MPI", said) else ""


def quiet(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the user's settings for the program's own run, and without tarazu's."""
    return {k: v for k, v in environ.items() if not _DISTURBING.match(k)}


def hosts_of_file(path: str) -> tuple[str, ...]:
    """Hosts of a host file, each once."""
    return tuple(dict.fromkeys(_bare(host) for host in batch_system.hosts_in_file(path))) if path else ()


def _batch_hosts(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Hosts that the environment names, and the file to hand over to a launcher that may not know of it."""
    for name in (*_BATCH_HOST_FILES, *_OTHER_HOST_FILES):
        hosts = hosts_of_file(environ.get(name, ""))
        if elsewhere(hosts):
            return hosts, environ[name] if name in _BATCH_HOST_FILES else ""
    return (), ""


def _bare(host: str) -> str:
    return re.sub(r":[\d*]+$", "", host.rpartition("@")[2])


def _named_hosts(words: Sequence[str]) -> tuple[str, ...]:
    """Hosts that a launcher's host options name, each once."""
    hosts: dict[str, None] = {}
    for name, value in _given(words, _HOST_LISTS | _HOST_FILES | _RANK_FILES):
        if name in _HOST_LISTS:
            hosts |= dict.fromkeys(_bare(host) for host in value.split(",") if host)
        elif name in _HOST_FILES:
            hosts |= dict.fromkeys(hosts_of_file(value))
        else:
            hosts |= dict.fromkeys(_hosts_of_rank_file(value))
    return tuple(hosts)


def _hosts_of_rank_file(path: str) -> list[str]:
    """Lines of `rank 0=host slot=1`; `+n0` counts in a list of hosts that is elsewhere."""
    text = batch_system.small_text(path)
    return [_bare(host) for host in re.findall(r"^\s*rank\s+\d+\s*=\s*([^\s+]\S*)", text, re.MULTILINE)]


def _given(words: Sequence[str], options: frozenset[str]) -> list[tuple[str, str]]:
    """(option, value) of those that are given."""
    found = []
    for position, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in options:
            found.append((name, value if equals else "".join(words[position + 1 : position + 2])))
    return found


def _without(words: Sequence[str], options: frozenset[str]) -> list[str]:
    """`words` without these options and their values."""
    kept: list[str] = []
    skip = False
    for word in words:
        name, equals, _ = word.lstrip("-").partition("=")
        ours = not skip and word.startswith("-") and name in options
        if not (ours or skip):
            kept.append(word)
        skip = ours and not equals
    return kept


def elsewhere(hosts: Sequence[str]) -> list[str]:
    """Those that are other nodes than this."""
    here = {"localhost", "127.0.0.1", "::1", socket.gethostname().partition(".")[0]}
    return [host for host in hosts if host not in here and host.partition(".")[0] not in here]


def run(
    each: EachNode,
    command: Sequence[str],
    environ: Mapping[str, str],
    take: Callable[[bytes], None],
    *,
    seconds: float,
    most_bytes: int,
    feed: BinaryIO | None = None,
    wait_for_stop: bool = True,
    unwanted: Callable[[], bool] = bool,
) -> str:
    """Run `command` once on each node; `take` gets the lines of standard output, none longer than 8 KiB.

    Returns what went wrong, empty for nothing, after `seconds` at most or soon after it is `unwanted`; a launcher that
    has not ended by then is stopped, which takes up to twice STOP_S, waited for or not.
    """
    ends_at = time.monotonic() + seconds
    prefix = list(each.prefix)
    while True:
        problem = _run([*prefix, *command], environ, take, ends_at, most_bytes, feed, wait_for_stop, unwanted)
        if "--overlap" in prefix and "unrecognized option" in problem and "overlap" in problem:
            prefix.remove("--overlap")
            if feed:
                feed.seek(0)
            continue
        return f"{each.launcher}: {problem}" if problem else ""


def _run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    take: Callable[[bytes], None],
    ends_at: float,
    most_bytes: int,
    feed: BinaryIO | None,
    wait_for_stop: bool,
    unwanted: Callable[[], bool],
) -> str:
    try:
        process = subprocess.Popen(
            list(argv),
            env=quiet(environ),
            stdin=feed or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # what the terminal sends to the job is not meant for it
        )
    except OSError as error:
        return str(error)
    try:
        problem, said = _read(process, take, ends_at, most_bytes, unwanted)
        if not problem:
            try:
                process.wait(max(0.1, ends_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                problem = "it did not end in time"
    finally:
        stopping = threading.Thread(target=_stop, args=(process,))
        stopping.start()
        if wait_for_stop or process.poll() is not None:
            stopping.join()
    if problem or process.returncode == 0:
        return problem
    return f"ended with status {process.returncode}: {_telling_line(said)}"


def _read(
    process: subprocess.Popen[bytes],
    take: Callable[[bytes], None],
    ends_at: float,
    most_bytes: int,
    unwanted: Callable[[], bool],
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
                return "no end within the time that is given", errors
            if unwanted():
                return "given up at a signal", errors
            for key, _ in selector.select(min(left_s, _LOOK_S)):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors = (errors + data)[:4096]
                else:
                    count += len(data)
                    if count > most_bytes:
                        return f"more than {most_bytes >> 20} MiB came", errors
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
