"""Darshan logs of jobs that there is no log of, written by Darshan's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.trace.darshan import writer

START_S = 10.0


def job(
    path: Path,
    sizes: Sequence[int],
    osts: Sequence[Sequence[int]],
    *,
    ends: Sequence[float],
    starts: Sequence[float] | None = None,
    directory: str = "/lustre/out",
    changes: Mapping[str, Any] | None = None,
    extra: Mapping[str, bytes] | None = None,
    names: Mapping[int, str] | None = None,
    **options: Any,
) -> Path:
    """A file for each rank, written from `starts` (10 s) to `ends`; changes: counters of POSIX beside them."""
    count = len(sizes)
    ids = np.arange(1, count + 1)
    begin = np.full(count, START_S) if starts is None else np.array(starts)
    counters: dict[str, Any] = {
        "OPENS": 1,
        "WRITES": 4,
        "BYTES_WRITTEN": sizes,
        "MAX_BYTE_WRITTEN": np.array(sizes) - 1,
        "F_OPEN_START_TIMESTAMP": 9.0,
        "F_WRITE_START_TIMESTAMP": begin,
        "F_WRITE_END_TIMESTAMP": ends,
        "F_CLOSE_END_TIMESTAMP": ends,
        "F_WRITE_TIME": np.array(ends) - begin,
        **(changes or {}),
    }
    modules = {"POSIX": writer.table("POSIX", ids, np.arange(count), **counters), **(extra or {})}
    if osts and "LUSTRE" not in modules:
        modules["LUSTRE"] = b"".join(writer.plain(n, of) for n, of in zip(ids.tolist(), osts, strict=True))
    named = names if names is not None else {n: f"{directory}/f.{n}" for n in ids.tolist()}
    return writer.write(path, modules, named, **{"ranks": count, **options})
