"""A run of tarazu's own history → workload: what it created, when, and how much was in it at the end.

The history has no reads and no times of writes: each file is created at its time, written at once and closed.
"""

from __future__ import annotations

import numpy as np

from tarazu.errors import BadInput, LayoutError
from tarazu.native import decode_lov
from tarazu.sim.workloads.operations import at_least, even_parts, in_order, rows, within
from tarazu.sim.workloads.workload import File, OperationKind, Workload
from tarazu.trace.records import FileRecord, RunRecord


def workload(run: RunRecord, *, ranks_per_node: int = 0, placement: bool = False) -> Workload:
    """The files of a run, in the order of their creation.

    ranks_per_node: 0 for ranks over nodes as the step had them; placement: files keep the layouts and OSTs that they
    were given, where the history has them whole. Shared files: each of the ranks that asked for one writes an equal
    piece, one after another in the file. Raises BadInput for a run without files.
    """
    at_least("ranks_per_node", 0, ranks_per_node=ranks_per_node)
    if not run.files:
        raise BadInput(f"run of {run.step.application}", "files that it created", "none")
    ranks = max(run.step.ranks, 1 + max((max(f.creators, default=0) for f in run.files), default=0))
    assumed = ["times of writes and all reads: the history has none; each file is written when it is created"]
    if run.partial or not run.complete:
        assumed.append("the history says that files of this run may be missing")
    creators = [of.creators or (max(of.rank, 0),) for of in run.files]
    counts = np.array([len(of) for of in creators])
    file, part = within(0, counts)
    rank = np.concatenate([np.asarray(of, np.int64) for of in creators])
    # What was written of it: more than its size where something was written again.
    moved = np.array([of.written_bytes if of.counted else of.size_bytes for of in run.files], np.int64)
    sizes = np.array([of.size_bytes for of in run.files], np.int64)
    _, written = even_parts(moved[file], counts[file], part)
    offset, span = even_parts(sizes[file], counts[file], part)
    at_s = np.maximum(np.array([of.at_s for of in run.files]), 0.0)[file]
    there = np.array([of.existed for of in run.files])[file]
    opens = rows(OperationKind.OPEN, rank, file, earliest_s=at_s)
    opens["kind"][(part == 0) & ~there] = OperationKind.CREATE
    some = written > 0
    writes = rows(
        OperationKind.WRITE,
        rank,
        file,
        bytes=written,
        offset=offset,
        span_bytes=np.where(span, span, written),
    )
    closes = rows(OperationKind.CLOSE, rank, file)
    step = 3 * file
    operations = in_order((opens, step), (writes[some], step[some] + 1), (closes, step + 2))
    return Workload(
        run.step.application,
        ranks,
        ranks_per_node or max(1, -(-ranks // max(run.step.nodes, 1))),
        tuple(_file(of, placement) for of in run.files),
        operations,
        assumed=tuple(assumed),
    )


def _file(of: FileRecord, placement: bool) -> File:
    if not placement or not of.layout:
        return File(of.key, of.size_bytes, of.existed)
    try:
        decoded = decode_lov(of.layout)
    except LayoutError:
        return File(of.key, of.size_bytes, of.existed)
    layout, osts = decoded.layout(), tuple(c.osts for c in decoded.components)
    whole = [len(o) == c.stripe_count for c, o in zip(layout.components, osts, strict=False)]
    placed = decoded.mirrors <= 1 and len(osts) == len(whole) and all(whole)
    return File(of.key, of.size_bytes, of.existed, layout, osts if placed else None)
