"""What the batch system says in the environment: the job, its array, its size; whether this is a rank of a step."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from tarazu.batch.node_set import names_in
from tarazu.model import LONGEST_ID

_JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID")
_PARTITION_VARIABLES = ("SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE", "QUEUE")
_INDEX_VARIABLES = (
    "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAY_INDEX",
    "PBS_ARRAYID",
    "LSB_JOBINDEX",
    "SGE_TASK_ID",
)
_TASK_VARIABLES = (
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "PBS_NP",
    "LSB_DJOB_NUMPROC",
    "NSLOTS",
)
_NODE_VARIABLES = (
    *("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_STEP_NUM_NODES"),
    *("PBS_NUM_NODES", "NHOSTS", "COBALT_JOBSIZE"),
)
_PER_NODE_VARIABLES = ("SLURM_NTASKS_PER_NODE", "PBS_NUM_PPN")
_BY_NODE_VARIABLES = ("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE")
"""`4(x2),3`: tasks of each node."""
_NODE_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "COBALT_NODEFILE")
_LIST_VARIABLES = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
_TIMES = r"(?a)(\d{1,9})(?:\(x(\d{1,9})\))?"
_MOST_NODES = 1 << 20
_MOST_COMPONENTS = 128
"""Slurm's own bound is below."""
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("PALS_RANKID", ""),
    ("PMIX_RANK", ""),
    ("ALPS_APP_PE", ""),
)
"""What a launcher tells each of its ranks: which it is, of how many."""
_SPECIAL_SLURM_STEPS = 4_294_967_280
"""Step ids from here on are Slurm's own (batch, extern, interactive)."""
_LARGEST_FILE = 1 << 20


RECORDED = "slurm-"
"""The ids of steps that the site's task prolog records, and nobody leads, begin with this."""


def is_led(environ: Mapping[str, str]) -> bool:
    """True in the processes of a program that `tarazu run` leads."""
    step = environ.get("TARAZU_STEP", "")
    return bool(step) and not step.startswith(RECORDED)


def inside_job_step(environ: Mapping[str, str]) -> bool:
    """True in one of several ranks that a parallel launcher has started: `mpirun -np 4 tarazu run app`.

    The shell of an interactive allocation is none of them, whatever it was started with (`salloc`, `srun --pty bash`).
    """
    if is_led(environ):
        return True
    alone = _alone_in_slurm(environ)
    ranks = [(environ[rank], environ.get(size, "")) for rank, size in _RANKS if rank in environ]
    if alone is False or any(size not in ("", "1") for _, size in ranks):
        return True
    alone = alone or any(size == "1" for _, size in ranks)
    return (not alone and bool(ranks)) or any(rank != "0" for rank, _ in ranks)


def _alone_in_slurm(environ: Mapping[str, str]) -> bool | None:
    """Is this the only task of a step of Slurm's, or a shell with a terminal in one? None outside of steps."""
    step = environ.get("SLURM_STEP_ID", "")
    if not step.isdecimal():
        return None
    if int(step) >= _SPECIAL_SLURM_STEPS or environ.get("SLURM_STEP_NUM_TASKS") == "1":
        return True
    return environ.get("SLURM_PROCID") == "0" and "SLURM_PTY_PORT" in environ and _has_terminal()


def _has_terminal() -> bool:
    """True when a terminal controls this process: that of `srun --pty`, for other tasks have none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def job_id(environ: Mapping[str, str]) -> str:
    """The batch system's job id; empty outside of one."""
    return next((environ[name] for name in _JOB_VARIABLES if environ.get(name)), "")


def project(environ: Mapping[str, str]) -> str:
    """The account that the batch system charges; empty where it does not say."""
    return environ.get("SLURM_JOB_ACCOUNT") or environ.get("LSB_PROJECT_NAME") or ""


def partition(environ: Mapping[str, str]) -> str:
    """The partition or queue in which the job runs; empty where it does not say."""
    return next((environ[name] for name in _PARTITION_VARIABLES if environ.get(name)), "")


def job_array(environ: Mapping[str, str]) -> tuple[str, int | None]:
    """(id that all tasks of the job array share where each has its own beside it, index of this task)."""
    texts = [environ[name] for name in _INDEX_VARIABLES if environ.get(name, "").isdecimal()]
    index = int(texts[0]) if texts and len(texts[0]) < 10 else None
    if index == 0 and environ.get("LSB_JOBINDEX") == "0" and "SLURM_ARRAY_TASK_ID" not in environ:
        index = None  # LSF's way to say that the job is no array
    return environ.get("SLURM_ARRAY_JOB_ID", "")[:LONGEST_ID], index


class Allocated(msgspec.Struct, frozen=True):
    """What the batch system gave; 0 and empty: it does not say."""

    tasks: int = 0
    """It was asked for so many."""
    tasks_per_node: int = 0
    nodes: int = 0
    slots: tuple[int, ...] = ()
    """How many tasks each node has room for."""

    @property
    def room(self) -> int:
        """How many tasks an MPI library starts there."""
        return self.tasks or sum(self.slots) or self.tasks_per_node * self.nodes


def allocated(environ: Mapping[str, str]) -> list[Allocated]:
    """The allocation; that of each component of a heterogeneous job of Slurm's."""
    count = _first_number(environ, ("SLURM_HET_SIZE", "SLURM_PACK_SIZE"))
    found = []
    for number in range(count if 1 < count <= _MOST_COMPONENTS else 0):
        kinds = (f"_HET_GROUP_{number}", f"_PACK_GROUP_{number}")
        own = {name[: -len(k)]: value for name, value in environ.items() for k in kinds if name.endswith(k)}
        if own:
            found.append(_allocated(own))
    return found or [_allocated(environ)]


def together(components: Sequence[Allocated]) -> Allocated:
    """Several components as one allocation."""
    first, *others = components
    if not others:
        return first
    slots = [part.slots for part in components]
    return Allocated(
        tasks=sum(part.room for part in components),
        nodes=sum(part.nodes for part in components),
        slots=sum(slots, ()) if all(slots) else (),
    )


def _allocated(environ: Mapping[str, str]) -> Allocated:
    slots = tuple(_slots(environ))
    tasks, per_node = _first_number(environ, _TASK_VARIABLES), _first_number(environ, _PER_NODE_VARIABLES)
    if not (slots or per_node):  # else it may be the one task of salloc's shell
        tasks = tasks or _first_number(environ, ("SLURM_STEP_NUM_TASKS",))
    return Allocated(
        tasks=tasks,
        tasks_per_node=per_node,
        nodes=_first_number(environ, _NODE_VARIABLES) or len(slots) or _listed(environ),
        slots=slots,
    )


def _slots(environ: Mapping[str, str]) -> list[int]:
    for name in _BY_NODE_VARIABLES:
        if by_node := _unfolded(environ.get(name, "")):
            return by_node
    words = environ.get("LSB_MCPU_HOSTS", "").split()
    if words and all(word.isdecimal() for word in words[1::2]):
        return [int(word) for word in words[1::2]]
    for name in _NODE_FILES:
        if environ.get(name) and (hosts := hosts_in_file(environ[name])):
            return list(hosts.values())
    if named := Counter(environ.get("LSB_HOSTS", "").split()):
        return list(named.values())
    return _grid_engine(environ.get("PE_HOSTFILE", ""))


def _listed(environ: Mapping[str, str]) -> int:
    """Nodes that Slurm names, folded."""
    names = (environ[name] for name in _LIST_VARIABLES if environ.get(name))
    return next((count for count in map(len, map(names_in, names)) if count), 0)


def slurm_nodes(environ: Mapping[str, str]) -> tuple[int, str]:
    """Nodes of Slurm's allocation: how many, and their names, folded; 0 and none where it does not say."""
    if not environ.get("SLURM_JOB_ID"):
        return 0, ""
    return _first_number(environ, ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")), environ.get(
        "SLURM_JOB_NODELIST", ""
    )


def _first_number(environ: Mapping[str, str], names: tuple[str, ...]) -> int:
    return next((int(environ[n]) for n in names if environ.get(n, "").isdecimal() and int(environ[n])), 0)


def _unfolded(text: str) -> list[int]:
    """The numbers of `4(x2),3`; none of what is no such list."""
    parts = [re.fullmatch(_TIMES, part.strip()) for part in text.split(",")]
    runs = [(int(part[1]), int(part[2] or 1)) for part in parts if part]
    if len(runs) < len(parts) or sum(times for _, times in runs) > _MOST_NODES:
        return []
    return [number for number, times in runs for _ in range(times)]


def _grid_engine(path: str) -> list[int]:
    """Slots by host of Grid Engine's `host slots queue processors`, where a host may stand in several lines."""
    hosts: Counter[str] = Counter()
    for line in small_text(path).splitlines() if path else ():
        words = line.split()
        if len(words) > 1 and words[1].isdecimal():
            hosts[words[0]] += int(words[1])
    return list(hosts.values())


def hosts_in_file(path: str) -> dict[str, int]:
    """Host → slots of a launcher's host file: `a`, `a:2`, `a slots=2`, one line per slot."""
    hosts: dict[str, int] = {}
    for line in small_text(path).splitlines():
        words = line.partition("#")[0].split()
        if words:
            host, _, count = words[0].partition(":")
            given = [w.partition("=")[2] for w in words[1:] if w.startswith("slots=")]
            text = given[0] if given else count
            hosts[host] = hosts.get(host, 0) + (int(text) if text.isdecimal() else 1)
    return hosts


def small_text(path: str) -> str:
    """What a launcher's file says; empty if it cannot be read.

    Only a regular file is read: a pipe holds what the launcher itself is to read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.stat(path).st_size > _LARGEST_FILE:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
