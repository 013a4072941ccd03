"""The observations of all situations and windows as arrays, in one file: what the offline evaluation samples from."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests.situation import SITUATIONS, WINDOWS
from tarazu.parts.council.study.requests.situations import BASELINES, SituationRow

SCHEDULERS = (*WINDOWS, *BASELINES)
"""The windows first: their numbers are the bandit's actions."""
FORMAT = 1


class Dataset(NamedTuple):
    """Runs, R, and their observations one after another, O."""

    situation: NDArray[np.int16]
    """(R,) number in SITUATIONS."""
    scheduler: NDArray[np.int16]
    """(R,) number in SCHEDULERS."""
    seed: NDArray[np.int64]
    """(R,)"""
    makespan_s: NDArray[np.float64]
    """(R,)"""
    bytes: NDArray[np.int64]
    """(R,) that moved."""
    first: NDArray[np.int64]
    """(R + 1,) run r's observations are first[r]:first[r + 1]."""
    node: NDArray[np.int16]
    """(O,) the I/O node."""
    end_s: NDArray[np.float64]
    """(O,) when the interval ended, since the run's start."""
    reward: NDArray[np.float64]
    """(O,) bytes/s of one node in one interval; without I/O there is no observation."""
    demand: NDArray[np.float32]
    """(O,) requests queued or in service, on average."""

    def rewards(self, situation: int, scheduler: int) -> NDArray[np.float64]:
        """All that was observed of it, over all seeds, in the order of time."""
        runs = np.flatnonzero((self.situation == situation) & (self.scheduler == scheduler))
        return np.concatenate([self.reward[self.first[r] : self.first[r + 1]] for r in runs] or [np.zeros(0)])

    def makespans(self, seed: int) -> NDArray[np.float64]:
        """(144, 10) seconds, situations by SCHEDULERS; NaN where there is no run."""
        seconds = np.full((len(SITUATIONS), len(SCHEDULERS)), np.nan)
        runs = np.flatnonzero(self.seed == seed)
        seconds[self.situation[runs], self.scheduler[runs]] = self.makespan_s[runs]
        return seconds


def gathered(rows: Iterable[SituationRow]) -> Dataset:
    rows = list(rows)
    return Dataset(
        np.array([row.situation for row in rows], np.int16),
        np.array([SCHEDULERS.index(row.scheduler) for row in rows], np.int16),
        np.array([row.seed for row in rows], np.int64),
        np.array([row.makespan_s for row in rows]),
        np.array([row.bytes for row in rows], np.int64),
        np.cumsum([0, *(len(row.rewards) for row in rows)]),
        np.array([node for row in rows for node in row.nodes], np.int16),
        np.array([end for row in rows for end in row.ends_s]),
        np.array([reward for row in rows for reward in row.rewards]),
        np.array([demand for row in rows for demand in row.demands], np.float32),
    )


def write(data: Dataset, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, format=np.array(FORMAT), **data._asdict())


def read(path: Path) -> Dataset:
    """Raises BadInput for what is not such a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = int(arrays["format"])
            if found != FORMAT:
                raise BadInput(str(path), f"a data set of format {FORMAT}", f"format {found}")
            data = Dataset(*(arrays[name] for name in Dataset._fields))
    except NOT_ONE as error:
        raise BadInput(
            str(path), "a data set of situations (numpy .npz)", f"{type(error).__name__}: {error}"
        ) from None
    if not _whole(data):
        raise BadInput(str(path), "arrays of numbers, as long as there are runs and observations", "others")
    return data


NOT_ONE = (
    OSError,
    KeyError,
    ValueError,
    TypeError,
    EOFError,
    BadZipFile,
    zlib.error,
    RuntimeError,
    MemoryError,
)
"""What reading says of a file that is damaged, or another one (RuntimeError: of an archive with features that zipfile
does not know)."""


def _whole(data: Dataset) -> bool:
    """Whether all of it belongs together."""
    runs, count = len(np.atleast_1d(data.situation)), len(np.atleast_1d(data.reward))
    lengths = {"first": runs + 1} | dict.fromkeys(("node", "end_s", "reward", "demand"), count)
    if any(
        array.shape != (lengths.get(name, runs),) or array.dtype.kind not in "iuf"
        for name, array in data._asdict().items()
    ):
        return False
    ends_well = data.first[0] == 0 and data.first[-1] == count and bool((np.diff(data.first) >= 0).all())
    numbers = ((data.situation, len(SITUATIONS)), (data.scheduler, len(SCHEDULERS)))
    return ends_well and all(bool(((array >= 0) & (array < many)).all()) for array, many in numbers)
