"""The MPI libraries that the tests use, by names that do not depend on which of them is the machine's default."""

from __future__ import annotations

import shutil


def _first(*names: str) -> str:
    return next((name for name in names if shutil.which(name)), names[0])


OPENMPI_RUN = _first("mpirun.openmpi", "mpirun")
OPENMPI_CC = _first("mpicc.openmpi", "mpicc")
MPICH_RUN = _first("mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich")
