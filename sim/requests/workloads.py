"""Workloads for what learns online (paper, sections V-C and V-D)."""

from __future__ import annotations

from tarazu.sim.requests.situation import SCALE, TABLE_III
from tarazu.sim.requests.workload import Phase, Workload
from tarazu.tune.pattern import Operation

MADBENCH_PROCESSES, MADBENCH_PIXELS, MADBENCH_BINS = 256, 1280, 80
"""N_p, N_pix and N_bin of section V-D (N_gang is 1)."""
MATRIX_BYTES = 8 * MADBENCH_PIXELS**2
"""A matrix of N_pix x N_pix doubles, which all processes share out among them: 51,200 bytes each."""
C_PASSES = 4
"""C reads all N_bin matrices again for each of them, 84 GB in all; here so many times."""


def write_and_read(times: int, part: int = SCALE, pause_s: float = 0.0) -> Workload:
    """The benchmark of section V-C: four I/O nodes; 128 processes write 4 GB of a shared file in 1D-strided requests of
    32 KB and read them (situation F), again and again.

    part: as of `simulate`; pause_s: before each phase.
    """
    one = TABLE_III["F"]
    write = one._replace(operation="write").phase(part)._replace(name="write", pause_s=pause_s)
    read = one.phase(part)._replace(name="read", pause_s=pause_s)
    return Workload(one.nodes, (write, read) * times)


def madbench2(times: int, part: int = SCALE, nodes: int = 4) -> Workload:
    """MADbench2's components S, W and C on one shared file, again and again (table V).

    The matrices lie one after another and each process has its part of each: 1D-strided. S writes N_bin of them, W
    reads N_bin and writes N_bin into another file, C reads all, `C_PASSES` times, each a phase. The calculations
    between are left out, as is MPI's part.
    """
    size = MATRIX_BYTES // MADBENCH_PROCESSES

    def phase(name: str, operation: Operation, matrices: int) -> Phase:
        total = matrices * MATRIX_BYTES
        return Phase(name, operation, "strided", True, MADBENCH_PROCESSES, size, total, part)

    return Workload(
        nodes,
        (
            phase("S", "write", MADBENCH_BINS),
            phase("W", "both", 2 * MADBENCH_BINS),
            *(phase("C", "read", MADBENCH_BINS) for _ in range(C_PASSES)),
        )
        * times,
    )
