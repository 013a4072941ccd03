"""HACC-IO: the checkpoint of a cosmology code, and its restart."""

from __future__ import annotations

import numpy as np

from tarazu.errors import BadInput
from tarazu.sim.workloads.operations import at_least, in_order, rows
from tarazu.sim.workloads.workload import File, OperationKind, Workload
from tarazu.units import MIB

PARTICLE_BYTES, HEADER_BYTES = 38, 24 * MIB
"""Seven floats, an id of 64 bits, a mask of 16; one header a file."""


def hacc_bytes(particles: int) -> int:
    """Size of a file with so many particles."""
    return PARTICLE_BYTES * particles + HEADER_BYTES


def workload(
    *,
    ranks: int,
    particles: int,
    shared: bool = False,
    write: bool = True,
    read: bool = True,
    repetitions: int = 1,
    ranks_per_node: int = 8,
    name: str = "hacc-io",
) -> Workload:
    """A HACC-IO run.

    particles: of each rank; shared: all ranks in one file, one behind the other, else a file each; write: the
    checkpoint; read: the restart, of the same files; those that are only read were there before; repetitions: each
    with new files. As in logs of the benchmark: rank 0 of a file creates it, all open it and write their particles
    behind the header's 24 MiB, rank 0 then the header; it is read header first. Raises BadInput.
    """
    at_least(
        name, 1, ranks=ranks, particles=particles, repetitions=repetitions, ranks_per_node=ranks_per_node
    )
    if not (write or read):
        raise BadInput(f"{name}.write, {name}.read", "one of them", "neither")
    everyone = np.arange(ranks)
    per_file = ranks if shared else 1
    size, mine = hacc_bytes(particles * per_file), particles * PARTICLE_BYTES
    number = ranks // per_file
    files = tuple(
        File(f"/{name}.{n:04}-Part{k:08}-of-{number:08}.data", size, exists=not write)
        for n in range(repetitions)
        for k in range(number)
    )
    offset = HEADER_BYTES + (everyone % per_file) * mine
    leads = everyone % per_file == 0
    parts = []
    for repetition in range(repetitions):
        file = repetition * number + everyone // per_file
        step = 20 * repetition
        if write:
            created = rows(OperationKind.CREATE, everyone[leads], file[leads])
            header = rows(OperationKind.WRITE, everyone[leads], file[leads], bytes=HEADER_BYTES)
            parts += [
                (created, step),
                (rows(OperationKind.BARRIER, everyone, -1), step + 1),
                (rows(OperationKind.OPEN, everyone[~leads], file[~leads]), step + 2),
                (rows(OperationKind.WRITE, everyone, file, bytes=mine, offset=offset), step + 3),
                (header, step + 4),
                (rows(OperationKind.CLOSE, everyone, file), step + 5),
                (rows(OperationKind.BARRIER, everyone, -1), step + 6),
            ]
        if read:
            header = rows(OperationKind.READ, everyone[leads], file[leads], bytes=HEADER_BYTES)
            parts += [
                (rows(OperationKind.OPEN, everyone, file), step + 10),
                (header, step + 11),
                (rows(OperationKind.READ, everyone, file, bytes=mine, offset=offset), step + 12),
                (rows(OperationKind.CLOSE, everyone, file), step + 13),
                (rows(OperationKind.BARRIER, everyone, -1), step + 14),
            ]
    return Workload(name, ranks, ranks_per_node, files, in_order(*parts))
