"""Synthetic runs: processes create files in order, names get their templates from the C library itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tarazu.model import ANY_RANK, JobStep
from tarazu.native import template
from tarazu.trace.records import FileRecord, RunRecord

START_S = 1_700_000_000.0


def make_run(
    files: Callable[[int], list[tuple[str, int]]],
    *,
    number: int = 0,
    ranks: int = 4,
    nodes: int = 1,
    numbers: tuple[float, ...] = (),
    job_id: str | None = None,
    hosts: Callable[[int], str] = lambda rank: f"node{rank // 4}",
    interval_s: float = 10.0,
    shared: bool = False,
    contiguous: bool = False,
    array_job: str = "",
    array_index: int | None = None,
    **fields: Any,
) -> RunRecord:
    """`files(rank)` → (key, size) in the order in which that rank creates them. `shared`: all ranks write them."""
    job = str(4000 + number) if job_id is None else job_id
    start_s = START_S + 86400 * number
    records = []
    for rank in range(ranks if not shared else 1):
        seen: Counter[str] = Counter()
        for n, (key, size) in enumerate(files(rank)):
            creator = ANY_RANK if shared and ranks > 1 else rank
            pid, array = 100 * number + rank, {"array_job": array_job, "array_index": array_index}
            names = template(key, job_id=job, rank=creator, pid=pid, host=hosts(rank), **array)  # type: ignore[arg-type]
            records.append(
                FileRecord(
                    key=key,
                    precise=names.precise,
                    loose=names.loose,
                    rank=creator,
                    creators=tuple(range(ranks)) if shared else (rank,),
                    nth_precise=seen["P" + names.precise],
                    nth_loose=seen["L" + names.loose],
                    at_s=1.0 + interval_s * n + rank / 1000,
                    size_bytes=size,
                    written_bytes=size,
                    writers=ranks if shared else 1,
                    contiguous=contiguous,
                    counted=True,
                )
            )
            seen["P" + names.precise] += 1
            seen["L" + names.loose] += 1
    records.sort(key=lambda f: f.at_s)
    step = JobStep("lustre", 1000, "app", job, ranks, nodes, numbers, start_s, array_job, array_index)
    run = RunRecord(step, start_s, 100.0, "full", tuple(records), ranks, ranks, ranks, **fields)
    return run


@pytest.fixture
def build() -> Callable[..., RunRecord]:
    return make_run
