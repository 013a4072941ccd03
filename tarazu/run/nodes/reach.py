"""How the nodes of a job step are reached: by `srun`, by the MPI launcher of the command line, or by `pbsdsh`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from tarazu import signals
from tarazu.batch import environment
from tarazu.run.command_line import launchers
from tarazu.run.nodes.each_node import EachNode, quiet
from tarazu.run.nodes.hosts import HOST_FILES, HOST_LISTS, RANK_FILES, batch_hosts, elsewhere, named_hosts

VERSION_S = 2.0
"""For a launcher to say what it is."""


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
    hosts, batch_file = named_hosts([option for part in line.host_options for option in part]), ""
    if not hosts:
        hosts, batch_file = batch_hosts(environ)
    if not elsewhere(hosts):
        return None
    parts = [tuple(option for option in part if option.name not in RANK_FILES) for part in line.host_options]
    options = [option for part in dict.fromkeys(parts) for option in part]
    words = [word for option in options for word in option.words]
    for launcher in [line.launcher] if line.launcher else ["mpirun", "mpiexec"]:
        match flavor(launcher):
            case "openmpi":
                files = [option for option in options if option.name in HOST_FILES]
                if len(files) > 1 or not (batch_file or named_hosts(options)):
                    kept = (o for o in options if o.name not in HOST_LISTS | HOST_FILES)
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
