"""The MPI libraries that the tests use, by names that do not depend on which of them is the machine's default."""

from __future__ import annotations

import shutil
import subprocess


def _first(*names: str) -> str:
    return next((name for name in names if shutil.which(name)), names[0])


def _is_open_mpi(launcher: str) -> bool:
    if shutil.which(launcher) is None:
        return False
    done = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in done.stdout + done.stderr


OPENMPI_RUN = "mpirun" if not shutil.which("mpirun.openmpi") and _is_open_mpi("mpirun") else "mpirun.openmpi"
OPENMPI_CC = _first("mpicc.openmpi", "mpicc")
MPICH_RUN = _first("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich")
