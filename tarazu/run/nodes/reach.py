"""How the nodes of a job step are reached: by `srun`, by the MPI launcher of the command line, or by `pbsdsh`.

Which hosts a step has is what its launcher was told, else what the batch system's environment says.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from tarazu import signals
from tarazu.batch import environment
from tarazu.run.command_line import launchers
from tarazu.run.command_line.launchers import Option
from tarazu.run.nodes.each_node import EachNode, quiet

VERSION_S = 2.0
"""For a launcher to say what it is."""
_HOST_LISTS = frozenset("H host hosts".split())
_HOST_FILES = frozenset("hostfile machinefile f machine default-hostfile".split())
_RANK_FILES = frozenset("rf rankfile".split())
_BATCH_HOST_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")
_OTHER_HOST_FILES = ("HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PE_HOSTFILE")
"""Files that their launcher finds by itself."""


def each_node(argv: Sequence[str], environ: Mapping[str, str]) -> EachNode | None:
    """How other nodes of the step that `argv` is can be reached; None: it has none, or nobody knows how."""
    count, names = environment.slurm_nodes(environ)
    if count > 1 and launchers.which("srun"):
        size = (f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1")
        # --overlap: beside a step that holds all CPUs; before Slurm 20.11 that needed no option.
        return EachNode(
            ("srun", "--overlap", *size, "--mem=0", "--kill-on-bad-exit=0", "--cpu-bind=none"),
            (names,) if names else (),
            feeds_all=True,
        )
    line = launchers.parse(argv)
    hosts, batch_file = _named_hosts([option for part in line.host_options for option in part]), ""
    if not hosts:
        hosts, batch_file = _batch_hosts(environ)
    if not elsewhere(hosts):
        return None
    parts = [tuple(option for option in part if option.name not in _RANK_FILES) for part in line.host_options]
    options = [option for part in dict.fromkeys(parts) for option in part]
    words = [word for option in options for word in option.words]
    for launcher in [line.launcher] if line.launcher else ["mpirun", "mpiexec"]:
        match flavor(launcher):
            case "openmpi":
                files = [option for option in options if option.name in _HOST_FILES]
                if len(files) > 1 or not (batch_file or _named_hosts(options)):
                    kept = (o for o in options if o.name not in _HOST_LISTS | _HOST_FILES)
                    words = [*(word for option in kept for word in option.words), "--host", ",".join(hosts)]
                words += ["--hostfile", batch_file] if batch_file else []
                return EachNode((launcher, *words, "--map-by", "ppr:1:node"), hosts)
            case "hydra":
                words += ["-f", batch_file] if batch_file else []
                return EachNode((launcher, *words, "-ppn", "1", "-n", str(len(hosts))), hosts)
    if environ.get("PBS_NODEFILE") and launchers.which("pbsdsh"):
        # What it starts has the job's own output for its streams.
        return EachNode(("pbsdsh", "--"), hosts, answers=False)
    return None


def hosts(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of the step that `argv` is, as the launcher or the batch system names them, maybe folded; this one
    where neither names any. Starts nothing.
    """
    if names := environment.slurm_nodes(environ)[1]:
        return (names,)
    line = launchers.parse(argv)
    named = _named_hosts([option for part in line.host_options for option in part])
    return named or _batch_hosts(environ)[0] or (os.uname().nodename,)


def flavor(launcher: str) -> str:
    """`openmpi`, `hydra` (MPICH, MVAPICH, Intel MPI) or empty, as the launcher says of itself."""
    if not launchers.which(launcher):
        return ""
    try:
        with signals.as_given():
            process = subprocess.Popen(
                [launcher, "--version"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=quiet(os.environ),
            )
    except OSError:
        return ""
    with process:
        try:
            said, _ = process.communicate(timeout=VERSION_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return ""
    if re.search(rb"Open MPI|OpenRTE|open-mpi|PRRTE|prterun", said):
        return "openmpi"
    return "hydra" if re.search(rb"HYDRA|Intel\(R\) MPI", said) else ""


def hosts_of_file(path: str) -> tuple[str, ...]:
    """Hosts of a host file, each once."""
    return tuple(dict.fromkeys(_bare(host) for host in environment.hosts_in_file(path))) if path else ()


def _batch_hosts(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Hosts that the environment names, and the file to hand over to a launcher that may not know of it."""
    for name in (*_BATCH_HOST_FILES, *_OTHER_HOST_FILES):
        hosts = hosts_of_file(environ.get(name, ""))
        if elsewhere(hosts):
            return hosts, environ[name] if name in _BATCH_HOST_FILES else ""
    return (), ""


def _bare(host: str) -> str:
    return re.sub(r":[\d*]+$", "", host.rpartition("@")[2])


def _named_hosts(options: Iterable[Option]) -> tuple[str, ...]:
    """Hosts that a launcher's host options name, each once."""
    hosts: list[str] = []
    for option in options:
        if option.name in _HOST_LISTS:
            hosts += [_bare(host) for host in option.value.split(",") if host]
        elif option.name in _HOST_FILES:
            hosts += hosts_of_file(option.value)
        elif option.name in _RANK_FILES:
            hosts += _hosts_of_rank_file(option.value)
    return tuple(dict.fromkeys(hosts))


def _hosts_of_rank_file(path: str) -> list[str]:
    """Lines of `rank 0=host slot=1`; `+n0` counts in a list of hosts that is elsewhere."""
    text = environment.small_text(path)
    return [_bare(host) for host in re.findall(r"^\s*rank\s+\d+\s*=\s*([^\s+]\S*)", text, re.MULTILINE)]


def elsewhere(hosts: Sequence[str]) -> list[str]:
    """Those that are other nodes than this."""
    here = {"localhost", "127.0.0.1", "::1", os.uname().nodename.partition(".")[0]}
    return [host for host in hosts if host not in here and host.partition(".")[0] not in here]
