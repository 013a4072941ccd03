"""Stand-ins for three applications whose logs are not public: generators that meet what the paper says of them.

The paper (section 7.1.3, table 7) gives nodes, bytes read and bytes written, and in words how each does its I/O; runs
were on Summit, six ranks a node (one for each GPU). What it does not give is a parameter here, with its default.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.sim.workloads.operations import at_least, even_parts, in_order, rows, within
from tarazu.sim.workloads.workload import File, OperationKind, Workload

RANKS_PER_NODE = 6
GB = 10**9

Integers = NDArray[np.int64]
Generator = np.random.Generator


class Published(msgspec.Struct, frozen=True):
    """One column of table 7."""

    nodes: int
    read_bytes: int
    written_bytes: int
    training: bool
    """Deep learning: a data set is read again in every epoch. Else a simulation: each step reads what is new."""
    character: str


PUBLISHED = {
    "genomicPrediction": Published(
        128, 110_600_000_000, 80_200_000_000, True, "training of several models: more is read than written"
    ),
    "E3SM": Published(
        256,
        100_800_000_000,
        150_300_000_000,
        False,
        "a simulation: all ranks write history together, more than is read",
    ),
    "cosmoFlow": Published(
        64, 250_600_000_000, 52_400_000_000, True, "training on large volumes: by far most is read"
    ),
}

Name = Literal["genomicPrediction", "E3SM", "cosmoFlow"]


def workload(
    *,
    name: Name,
    steps: int = 10,
    spread: float = 0.2,
    seed: int = 0,
    pause_s: float = 0.0,
    ranks_per_node: int = RANKS_PER_NODE,
) -> Workload:
    """A job with the bytes of table 7, exactly, in which every rank writes a file in every step.

    Training (genomicPrediction, cosmoFlow): a step is an epoch; a data set of as many shards as ranks, there before the
    job, is read once an epoch, each shard by one rank, in an order that is drawn anew; then every rank writes its
    results. Simulation (E3SM): in each step every rank reads a file of its own with what drives the step, there before
    the job; all meet; then all write their history at once. Ranks meet at the end of each step.

    steps: of the whole job; spread: standard deviation of the sizes of files over their mean (log-normal), 0 for equal
    ones; seed: of sizes and orders; pause_s: computing between reads and writes of a step. Raises BadInput.
    """
    if name not in PUBLISHED:
        raise BadInput("name", f"one of {', '.join(PUBLISHED)}", name)
    at_least(name, 1, steps=steps, ranks_per_node=ranks_per_node)
    at_least(name, 0, seed=seed)
    if not 0 <= spread <= 3:
        raise BadInput(f"{name}.spread", "0 to 3", spread)
    if not pause_s >= 0:
        raise BadInput(f"{name}.pause_s", "0 or more", pause_s)
    of = PUBLISHED[name]
    ranks = of.nodes * ranks_per_node
    draw = np.random.default_rng([seed, list(PUBLISHED).index(name)])
    if of.training:
        held, read_file, read_bytes = _epochs(draw, of.read_bytes, ranks, steps, spread)
    else:
        held = read_bytes = _sizes(draw, of.read_bytes, ranks * steps, spread)
        read_file = np.arange(ranks * steps)
    written = _sizes(draw, of.written_bytes, ranks * steps, spread)
    files = _files(name, held, written, ranks, steps, of.training)
    step, rank = within(0, np.full(steps, ranks))
    write_file = len(held) + np.arange(ranks * steps)
    at = 10 * step
    parts = [
        (rows(OperationKind.OPEN, rank, read_file), at),
        (rows(OperationKind.READ, rank, read_file, bytes=read_bytes), at + 1),
        (rows(OperationKind.CLOSE, rank, read_file), at + 2),
        (rows(OperationKind.CREATE, rank, write_file, delay_s=pause_s), at + 4),
        (rows(OperationKind.WRITE, rank, write_file, bytes=written), at + 5),
        (rows(OperationKind.CLOSE, rank, write_file), at + 6),
        (rows(OperationKind.BARRIER, rank, -1), at + 7),
    ]
    if not of.training:
        parts.append((rows(OperationKind.BARRIER, rank, -1), at + 3))
    return Workload(name, ranks, ranks_per_node, files, in_order(*parts), stand_in=_stand_in(name, of))


def _sizes(draw: Generator, total: int, number: int, spread: float) -> Integers:
    """So many sizes, log-normal, whose sum is the total to the byte."""
    sigma = np.sqrt(np.log1p(spread**2))
    weights = draw.lognormal(0.0, sigma, number)
    ends = np.rint(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    ends[-1] = total
    sizes: Integers = np.diff(ends, prepend=0)
    return sizes


def _epochs(
    draw: Generator, total: int, ranks: int, epochs: int, spread: float
) -> tuple[Integers, Integers, Integers]:
    """Sizes of the shards; which shard each rank reads in each epoch, and how much of it."""
    _, lengths = even_parts(total, epochs, np.arange(epochs))
    shards = _sizes(draw, int(lengths.max()), ranks, spread)
    order = np.concatenate([draw.permutation(ranks) for _ in range(epochs)])
    read = shards[order]
    # Where the total is no multiple of the epochs: an epoch reads a byte less of its largest shard.
    short = np.repeat(lengths < lengths.max(), ranks) & (order == int(shards.argmax()))
    return shards, order, read - short


def _files(
    name: str, held: Integers, written: Integers, ranks: int, steps: int, training: bool
) -> tuple[File, ...]:
    inputs = [f"shard.{n:06}" for n in range(ranks)]
    if not training:
        inputs = [f"forcing.{s:04}.{r:06}" for s in range(steps) for r in range(ranks)]
    outputs = [f"out.{s:04}.{r:06}" for s in range(steps) for r in range(ranks)]
    files = [
        File(f"/{name}/{key}", size, exists=True) for key, size in zip(inputs, held.tolist(), strict=True)
    ]
    files += [File(f"/{name}/{key}", size) for key, size in zip(outputs, written.tolist(), strict=True)]
    return tuple(files)


def _stand_in(name: str, of: Published) -> str:
    return (
        f"stands for {name}, whose logs are not public; made to meet table 7 of the paper: {of.nodes} nodes, "
        f"{of.read_bytes / GB:g} GB read, {of.written_bytes / GB:g} GB written; {of.character}"
    )
