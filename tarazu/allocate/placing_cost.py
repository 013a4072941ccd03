"""What placing costs a job beside leaving its files to Lustre: requests to the MDS, and a later start."""

from __future__ import annotations

import numpy as np

from tarazu.allocate.problem import Problem
from tarazu.allocate.timing import Timing
from tarazu.layout.stripe_count import REQUEST_S
from tarazu.model import SystemView

MORE_REQUESTS, MORE_OF_COMPOSITE = 6, 7
"""To the MDS, for a placed file beside one of Lustre's own (8 instead of 2, composite at most 7 more:
`tests/preload/test_requests.py`)."""
LUSTRES_OWN = 2
AT_ONCE = 16
"""Requests that an MDS works on at a time: one for each core of a small one."""
START_S = 0.1
"""Of `tarazu run`, to take the plan and write it down, before the program starts."""
LEAST_BYTES_PER_S = 100e6
"""Of an OST that was never seen busier: a disk writes as much. Else what placing costs would seem little."""


def request_s(view: SystemView) -> float:
    """Seconds of a request to the MDS; the default where the view does not know it."""
    return REQUEST_S if view.request_s is None else view.request_s


def requests_s(problem: Problem, beside: int = 0) -> float:
    """Seconds of these files' requests if all are placed, but for `beside` of each. Who writes one file after another
    waits for the requests of each; those of a wave are made side by side, until the MDS has too many of them.
    """
    own = LUSTRES_OWN - beside
    each = [own + (MORE_OF_COMPOSITE if r.layout.composite else MORE_REQUESTS) for r in problem.requests]
    _, of_wave, files = np.unique(problem.waves, return_inverse=True, return_counts=True)
    turns = float((np.bincount(of_wave, each) / np.minimum(files, AT_ONCE)).sum())
    return turns * request_s(problem.view)


def more_s(problem: Problem) -> float:
    """Seconds that a job loses by requests while it writes if all of these files are placed, corrected."""
    return problem.view.correction.requests * requests_s(problem, beside=LUSTRES_OWN)


def in_time_of(timing: Timing, seconds: float, streams: float = 1.0) -> float:
    """The same in the time by which placements are judged: that of OSTs as fast as they were ever seen, which may have
    been far from busy. streams: what that time is to be multiplied by, as far as that is known (`Correction`).
    """
    longer = max(1.0, LEAST_BYTES_PER_S / float(np.median(timing.rate)))
    return seconds / streams if streams > 1 else seconds * max(1 / streams, longer)
