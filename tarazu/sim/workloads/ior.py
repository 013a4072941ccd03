"""IOR: every rank writes blocks, then all read them, by POSIX or MPI-IO, each in a file of its own or all in one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.sim.workloads.operations import at_least, even_parts, in_order, rows, within
from tarazu.sim.workloads.workload import File, OperationKind, Workload
from tarazu.units import MIB

REQUESTS = 16
"""A rank's blocks of one phase are played as at most so many operations, unless others are asked for."""
_STEPS = 64
"""Room for the steps of one phase in the order of a rank's operations."""


def workload(
    *,
    ranks: int,
    block_bytes: int,
    transfer_bytes: int = MIB,
    segments: int = 1,
    repetitions: int = 1,
    interface: Literal["POSIX", "MPIIO"] = "POSIX",
    collective: bool = False,
    aggregators: int = 0,
    shared: bool = False,
    write: bool = True,
    read: bool = True,
    reorder: bool = False,
    new_files: bool = True,
    interval_s: float = 0.0,
    ranks_per_node: int = 8,
    operations: int = REQUESTS,
    name: str = "ior",
) -> Workload:
    """An IOR run; IOR's own options stand in brackets.

    ranks: processes (-N); block_bytes: contiguous bytes a rank has in each segment (-b); transfer_bytes: of one
    call (-t); segments (-s): in a shared file, segment s of rank r begins at (s × ranks + r) blocks; repetitions
    (-i), each with new files (-m) or in the same ones; interface (-a); collective (-c): MPI-IO in which
    `aggregators` ranks (0: one a node) write an equal, contiguous part of the file each, the others wait; shared:
    one file for all (without -F); write (-w), read (-r): files that are only read were there before; reorder
    (-C): each rank reads what one of the next node wrote; interval_s: pause between repetitions (-d). Transfers
    follow one another without a pause, so that those of a block are one operation, as a client's cache makes of
    them; a rank's segments are at most `operations` evenly spread over their range. With MPI-IO rank 0 creates a
    shared file before the others open it.
    Raises BadInput for what IOR refuses.
    """
    at_least(name, 1, ranks=ranks, block_bytes=block_bytes, transfer_bytes=transfer_bytes, segments=segments)
    at_least(name, 1, repetitions=repetitions, ranks_per_node=ranks_per_node, operations=operations)
    at_least(name, 0, aggregators=aggregators)
    if block_bytes % transfer_bytes:
        raise BadInput(f"{name}.block_bytes", f"a multiple of transfer_bytes ({transfer_bytes})", block_bytes)
    if interface not in ("POSIX", "MPIIO"):
        raise BadInput(f"{name}.interface", "POSIX or MPIIO", interface)
    if collective and interface != "MPIIO":
        raise BadInput(f"{name}.collective", "interface MPIIO", interface)
    if not (write or read):
        raise BadInput(f"{name}.write, {name}.read", "one of them", "neither")
    if interval_s < 0:
        raise BadInput(f"{name}.interval_s", "0 or more", interval_s)
    rounds = repetitions if new_files else 1
    mine = block_bytes * segments
    size = mine * ranks if shared else mine
    keys = [
        f"/{name}.{n:04}" if shared else f"/{name}.{n:04}.{r:08}"
        for n in range(rounds)
        for r in range(1 if shared else ranks)
    ]
    files = tuple(File(key, size, exists=not write) for key in keys)
    everyone = np.arange(ranks)
    collected = collective and shared
    nodes = -(-ranks // ranks_per_node)
    parts: list[tuple[NDArray[np.void], int]] = []
    for repetition in range(repetitions):
        first = (repetition % rounds) * (1 if shared else ranks)
        for phase, kind in enumerate((OperationKind.WRITE, OperationKind.READ)):
            if not (write, read)[phase]:
                continue
            step = (2 * repetition + phase) * _STEPS
            shift = ranks_per_node if reorder and kind is OperationKind.READ else 0
            of = (everyone + shift) % ranks
            file = np.full(ranks, first) if shared else first + of
            pause = interval_s if repetition and (kind is OperationKind.WRITE or not write) else 0.0
            opens = rows(OperationKind.OPEN, everyone, file, delay_s=pause)
            creates = kind is OperationKind.WRITE and (new_files or not repetition)
            if creates:
                opens["kind"][: 1 if shared else ranks] = OperationKind.CREATE
            if creates and shared and interface == "MPIIO":
                parts += [(opens[:1], step), (_barrier(ranks), step + 1), (opens[1:], step + 2)]
            else:
                parts.append((opens, step))
            if collected:
                parts.append((_collective(kind, first, size, ranks, aggregators or nodes), step + 4))
            else:
                moves = _blocks(
                    kind, everyone, of, file, block_bytes, segments, ranks if shared else 1, operations
                )
                parts.append((moves, step + 4))
            parts += [(rows(OperationKind.CLOSE, everyone, file), step + 5), (_barrier(ranks), step + 6)]
    played = in_order(*parts)
    moving = (played["kind"] == OperationKind.WRITE) | (played["kind"] == OperationKind.READ)
    calls = np.where(moving, 0 if collected else transfer_bytes, 0).astype(np.int64)
    return Workload(name, ranks, ranks_per_node, files, played, call_bytes=calls)


def _barrier(ranks: int) -> NDArray[np.void]:
    return rows(OperationKind.BARRIER, np.arange(ranks), -1)


def _blocks(
    kind: OperationKind,
    ranks: NDArray[np.int64],
    of: NDArray[np.int64],
    file: NDArray[np.int64],
    block_bytes: int,
    segments: int,
    writers: int,
    operations: int,
) -> NDArray[np.void]:
    """Each rank's blocks of all segments: those of rank `of`, in a file that has `writers` of them a segment."""
    number = min(segments, operations)
    owner, turn = within(0, np.full(len(ranks), number))
    begin, count = even_parts(segments, number, turn)
    place = of[owner] if writers > 1 else 0
    return rows(
        kind,
        ranks[owner],
        file[owner],
        bytes=count * block_bytes,
        offset=(begin * writers + place) * block_bytes,
        span_bytes=((count - 1) * writers + 1) * block_bytes,
    )


def _collective(kind: OperationKind, file: int, size: int, ranks: int, aggregators: int) -> NDArray[np.void]:
    """Each aggregator's part of the file; they lie evenly among the ranks."""
    number = min(aggregators, ranks, size)
    turn = np.arange(number)
    offset, length = even_parts(size, number, turn)
    return rows(kind, turn * ranks // number, file, bytes=length, offset=offset)
