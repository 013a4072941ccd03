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
SPREADING = frozenset("map-by mapby bynode pernode rankfile rf".split())
"""Options of mpirun with which nodes are not filled one after another."""
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


def application(argv: Sequence[str]) -> str:
    """Its name, by a command line."""
    return _resolve(argv)[1][0].name


def executables(argv: Sequence[str]) -> list[str]:
    """The names under which processes of a command line run, behind launchers and shells as far as they show them."""
    names, commands = [], launchers.parse(argv).programs
    for _ in range(_NESTED):
        names += [PurePath(words[0]).name for words in commands]
        inner = interpreters.read(commands[0]).command
        if not inner:
            break
        commands = launchers.parse(inner).programs
    return names


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
    components = environment.allocated(environ)
    whole = environment.together(components)
    if not line.launcher:
        return 1, whole.nodes or 1
    if line.one_a_node and len(components) > 1:
        sizes = [
            _step_size(part, components[number])
            for part, numbers in zip(line.parts, _components_used(line), strict=True)
            for number in numbers
            if number < len(components)
        ]
        return sum(size for size, _ in sizes) or 1, sum(nodes for _, nodes in sizes) or 1
    if line.one_a_node:
        return _step_size((line.ranks, line.nodes, line.ranks_per_node, line.most_nodes), whole)
    size, nodes, per_node = line.ranks, line.nodes, line.ranks_per_node
    hosts = {} if nodes else _hosts(line)
    slots = sum(hosts.values())
    if not size and per_node:
        size = per_node * (nodes or len(hosts) or whole.nodes or 1)
    if not size and slots > len(hosts):
        size = slots
    if not size and nodes and not whole.tasks:
        size = (whole.tasks_per_node or 1) * nodes
    size = size or whole.room or 1
    if not nodes and per_node:
        nodes = min(-(-size // per_node), len(hosts) or whole.nodes or size)
    elif not nodes and slots > len(hosts):
        nodes = launchers.filled(list(hosts.values()), size)
    elif not nodes and not hosts and not line.names & SPREADING:
        nodes = launchers.filled(whole.slots, size)
    return size, min(nodes or len(hosts) or whole.nodes or 1, size)


def _step_size(said: tuple[int, int, int, int], given: environment.Allocated) -> tuple[int, int]:
    """(ranks, nodes) of a step of Slurm's: one task a node where nobody says how many."""
    size, nodes, per_node, most = said
    if nodes < most and given.nodes:
        nodes = max(nodes, min(most, given.nodes))
    if not size and per_node:
        size = per_node * (nodes or given.nodes or 1)
    size = size or given.tasks or (given.tasks_per_node or 1) * (nodes or given.nodes or 1)
    if not nodes and per_node:
        nodes = min(-(-size // per_node), given.nodes or size)
    return size, min(nodes or given.nodes or 1, size)


def _components_used(line: CommandLine) -> list[list[int]]:
    """The components of a heterogeneous job on which srun starts each program: one after another, or those named."""
    used = []
    for number, options in enumerate(line.host_options):
        named = [option.value for option in options if option.name in ("het-group", "pack-group")]
        ranges = re.findall(r"(\d{1,3})(?:-(\d{1,3}))?", named[-1]) if named else ()
        numbers = {n for first, last in ranges for n in range(int(first), int(last or first) + 1)}
        used.append(sorted(numbers) or [number])
    return used


def _hosts(line: CommandLine) -> dict[str, int]:
    """Host → slots, from the launcher's host files."""
    hosts: dict[str, int] = {}
    for option in (option for part in line.host_options for option in part):
        if option.name in ("hostfile", "machinefile", "machine", "f", "default-hostfile"):
            hosts |= environment.hosts_in_file(option.value)
    return hosts
