"""What a command line and the environment say of a job step before it runs: its application, size, numbers.

The application is the basename of the first executable that is no launcher, for interpreters that of the
script. Ranks, nodes and numeric arguments are regressors of the prediction, not part of its key.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from tarazu.model import JobStep
from tarazu.trace.arguments import numeric_arguments

LAUNCHERS = frozenset(
    "mpirun mpiexec mpiexec.hydra orterun prterun srun jsrun aprun flux ibrun ccc_mprun "
    "env nice nohup numactl taskset time timeout stdbuf setsid ionice chrt".split()
)
INTERPRETERS = re.compile(r"(python|perl|ruby|bash|sh|dash|zsh|ksh|Rscript|julia|java|lua|tclsh)[\d.]*$")
MPI_LAUNCHERS = frozenset("mpirun mpiexec mpiexec.hydra orterun prterun".split())

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "ALPS_APP_PE")
_JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID")
_NODE_VARIABLES = ("SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES")
_SPECIAL_SLURM_STEPS = 4_294_967_280
"""Step ids from here on are Slurm's own (batch, extern, interactive)."""


def inside_job_step(environ: Mapping[str, str]) -> bool:
    """True in a process that a parallel launcher has started: `mpirun tarazu run app`."""
    if environ.get("TARAZU_STEP"):
        return True
    step = environ.get("SLURM_STEP_ID", "")
    if step.isdecimal() and int(step) < _SPECIAL_SLURM_STEPS:
        return True
    return any(name in environ for name in _RANK_VARIABLES)


def program_index(argv: Sequence[str]) -> int:
    """Position of the application in a command line that may begin with launchers and their options."""
    index = 0
    while PurePath(argv[index]).name in LAUNCHERS:
        following = _next_executable(argv, index + 1)
        if following is None:
            break
        index = following
    return index


def _next_executable(argv: Sequence[str], index: int) -> int | None:
    """The next word that can be run: options, their values and VAR=value are passed over. None: there is none."""
    for position in range(index, len(argv)):
        word = argv[position]
        if word.startswith("-") or "=" in word or re.fullmatch(r"[\d.,:]+", word):
            continue
        if shutil.which(word):
            return position
    return len(argv) - 1 if len(argv) > index else None


def application(argv: Sequence[str]) -> str:
    """`mpirun -np 4 ./ior -b 1g` → `ior`; `python3 -u train.py` → `train.py`."""
    index = program_index(argv)
    name = PurePath(argv[index]).name
    if INTERPRETERS.match(name):
        for word in argv[index + 1 :]:
            if word == "-c":
                return name
            if word == "-m":
                position = argv.index(word)
                return argv[position + 1] if position + 1 < len(argv) else name
            if not word.startswith("-"):
                return PurePath(word).name
    return name


def ranks(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Processes of the step: `-n`/`-np` of the launcher(s), else the batch system's number, else 1."""
    total = 0
    if PurePath(argv[0]).name in LAUNCHERS:
        for option, value in itertools.pairwise(argv):
            if option in ("-n", "-np", "--np", "--ntasks", "-c") and value.isdecimal():
                total += int(value) if option != "-c" or PurePath(argv[0]).name in MPI_LAUNCHERS else 0
        for word in argv:
            if word.startswith(("--ntasks=", "--np=")) and word.partition("=")[2].isdecimal():
                total += int(word.partition("=")[2])
    if total:
        return total
    if PurePath(argv[0]).name in LAUNCHERS:
        return int(environ.get("SLURM_NTASKS") or environ.get("PBS_NP") or 1)
    return 1


def job_id(environ: Mapping[str, str]) -> str:
    """The batch system's job id; empty outside of one."""
    return next((environ[name] for name in _JOB_VARIABLES if environ.get(name)), "")


def identify(
    argv: Sequence[str], environ: Mapping[str, str], *, fs_name: str, app: str = "", uid: int | None = None
) -> JobStep:
    """The job step that `argv` will be."""
    nodes = next((environ[name] for name in _NODE_VARIABLES if environ.get(name, "").isdecimal()), "1")
    return JobStep(
        fs_name=fs_name,
        uid=os.getuid() if uid is None else uid,
        application=app or application(argv),
        job_id=environ.get("TARAZU_JOB") or job_id(environ),
        ranks=ranks(argv, environ),
        nodes=int(nodes),
        numbers=numeric_arguments(argv[program_index(argv) + 1 :]),
        start_s=time.time(),
    )
