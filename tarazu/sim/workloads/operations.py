"""Makes the operations of a workload from columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.sim.workloads.workload import OPERATION, OperationKind

Integers = NDArray[np.int64]


def rows(kind: OperationKind, rank: Any, file: Any, **columns: Any) -> NDArray[np.void]:
    """Operations of one kind; columns are as long as the longest of them, or one value for all.

    `span_bytes` is `bytes` unless given; what else is not given is 0.
    """
    columns.setdefault("span_bytes", columns.get("bytes", 0))
    columns.update(rank=rank, file=file)
    shape = np.broadcast_shapes(*(np.shape(values) for values in columns.values())) or (1,)
    made = np.zeros(shape, OPERATION)
    made["kind"] = kind
    for name, values in columns.items():
        made[name] = values
    return made


def in_order(*parts: tuple[NDArray[np.void], Any]) -> NDArray[np.void]:
    """All of them, sorted by rank and then by the step that stands beside each part; else as they stand."""
    operations = np.concatenate([part for part, _ in parts])
    steps = np.concatenate([np.broadcast_to(np.asarray(step), len(part)) for part, step in parts])
    order = np.lexsort((steps, operations["rank"]))
    return operations[order]


def even_parts(amount: Any, parts: Any, part: Any) -> tuple[Integers, Integers]:
    """Where the `part`-th of so many equal parts of `amount` begins, and how long it is; together, all of it."""
    amount, parts = np.asarray(amount, np.int64), np.asarray(parts, np.int64)
    begin = _share(amount, parts, np.asarray(part, np.int64))
    return begin, _share(amount, parts, np.asarray(part, np.int64) + 1) - begin


def _share(amount: Integers, parts: Integers, part: Integers) -> Integers:
    """amount × part // parts; in two steps, so that it does not go beyond 64 bits."""
    whole, rest = amount // parts, amount % parts
    return np.asarray(whole * part + rest * part // parts, np.int64)


def within(start: Any, count: Any) -> tuple[Integers, Integers]:
    """For `count[i]` things each: which i it belongs to, and its number there; `start` is the i of the first."""
    counts = np.asarray(count, np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return owner + start, np.arange(len(owner)) - first


def at_least(where: str, least: int, **values: int) -> None:
    """Raises BadInput, one line, for the first value below."""
    for name, value in values.items():
        if value < least:
            raise BadInput(f"{where}.{name}", f"{least} or more", value)
