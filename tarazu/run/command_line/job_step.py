"""What a command line and the environment say of a job step before it runs: its application, size, numbers.

The application is the basename of the first executable that is no launcher, for interpreters that of the
script. Ranks, nodes and numeric arguments are regressors of the prediction, not part of its key.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from tarazu.batch import environment
from tarazu.model import JobStep
from tarazu.run.command_line import interpreters, launchers
from tarazu.run.command_line.launchers import CommandLine
from tarazu.units import numeric_arguments

SUBMITTERS = frozenset("sbatch qsub bsub msub yhbatch".split())
"""They end at once, and what they submit has a job, and a `tarazu run`, of its own."""
_NESTED = 4
"""`sh -c "sh -c …"` is followed this far."""


def inside_job_step(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """True where `tarazu run` is itself one of the ranks that a launcher has started: it has no step to lead.

    A command that begins with a launcher is a step of its own, wherever it was typed.
    """
    if not environment.is_led(environ) and _resolve(argv)[0].launcher:
        return False
    return environment.inside_job_step(environ)


def is_submission(argv: Sequence[str]) -> bool:
    """True where nothing is to be led: the command only hands a script to the batch system."""
    return PurePath(argv[0]).name in SUBMITTERS


def identify(
    argv: Sequence[str], environ: Mapping[str, str], *, fs_name: str, app: str = "", uid: int | None = None
) -> JobStep:
    """The job step that `argv` will be."""
    line, programs = _resolve(argv)
    size, nodes = _size(line, environ)
    array_job, index = environment.job_array(environ)
    return JobStep(
        fs_name=fs_name,
        uid=os.getuid() if uid is None else uid,
        application=app or programs[0].name,
        job_id=environ.get("TARAZU_JOB") or environment.job_id(environ),
        ranks=size,
        nodes=nodes,
        numbers=_numbers(programs),
        start_s=time.time(),
        array_job=array_job,
        array_index=index,
    )


def logged(words: Sequence[str]) -> tuple[str, tuple[float, ...]]:
    """(application, numbers) of a command line that somebody else has kept, as `identify` finds them."""
    if not words:
        return "unknown", ()
    _, programs = _resolve(words)
    return programs[0].name, _numbers(programs)


def _numbers(programs: Sequence[interpreters.ProgramCall]) -> tuple[float, ...]:
    return numeric_arguments([word for program in programs for word in program.arguments])


def _resolve(argv: Sequence[str]) -> tuple[CommandLine, list[interpreters.ProgramCall]]:
    """The launcher's part of a command line, and what it runs: one program at least."""
    line = launchers.parse(argv)
    commands: Sequence[Sequence[str]] = line.programs
    if "multi-prog" in line.names:
        commands = _listed_programs(line.programs[0][0]) or commands
    programs = [interpreters.read(words) for words in commands]
    for _ in range(_NESTED):
        inner = programs[0].command
        if not inner:
            break
        nested = launchers.parse(inner)
        if nested.launcher:
            line = nested
        programs = [interpreters.read(words) for words in nested.programs]
    return line, programs


def _listed_programs(path: str) -> list[list[str]]:
    """The programs that a file for `srun --multi-prog` names: lines of ranks, program, arguments."""
    lines = [line.split() for line in environment.small_text(path).splitlines()]
    return [words[1:] for words in lines if len(words) > 1 and re.match(r"[\d*]", words[0])]


def _size(line: CommandLine, environ: Mapping[str, str]) -> tuple[int, int]:
    """(ranks, nodes): what the launcher's options say, else its host file, else the allocation."""
    allocated = environment.nodes(environ)
    if not line.launcher:
        return 1, allocated or 1
    size, nodes, per_node = line.ranks, line.nodes, line.ranks_per_node
    hosts = {} if nodes else _hosts(line)
    slots = sum(hosts.values())
    if not size and per_node:
        size = per_node * (nodes or len(hosts) or allocated or 1)
    if not size and slots > len(hosts):
        size = slots
    if not size:
        size = environment.tasks(environ)
    if not size and nodes:
        size = (environment.tasks_per_node(environ) or 1) * nodes  # one task per node, as srun has it
    if not size:
        size = environment.tasks_per_node(environ) * allocated
    size = size or 1
    if not nodes and per_node:
        nodes = min(-(-size // per_node), len(hosts) or allocated or size)
    elif not nodes and slots > len(hosts):
        nodes = launchers.filled(list(hosts.values()), size)
    return size, min(nodes or len(hosts) or allocated or 1, size)


def _hosts(line: CommandLine) -> dict[str, int]:
    """Host → slots, from the launcher's host files."""
    hosts: dict[str, int] = {}
    for option in (option for part in line.host_options for option in part):
        if option.name in ("hostfile", "machinefile", "machine", "f", "default-hostfile"):
            hosts |= environment.hosts_in_file(option.value)
    return hosts
