"""A forecast of a run that nobody made: whatever a forecast loads at its first use is there before anybody waits."""

from __future__ import annotations

import os
import socket
from contextlib import closing

from tarazu.config import LayoutSettings
from tarazu.daemons.clientd.forecasts import work
from tarazu.daemons.clientd.forecasts.frames import Choose, ForecastTask, Pipe
from tarazu.layout.manager import UsableOsts
from tarazu.model import JobStep
from tarazu.plan.configure import layout_policy
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run
from tarazu.units import GIB
from tarazu.wire import local

FILES, OSTS, HORIZON_S = 16, 8, 1800.0
RUNS = 2
"""With one, no run is compared with the one before."""
STEP = JobStep("made up", 0, "made up", "")


def forecast() -> None:
    """The conversation of `work.serve`, with an end that says all before it begins and reads nothing."""
    ours, theirs = socket.socketpair()
    histories = [_history() for _ in range(RUNS)]
    try:
        with closing(Pipe(ours)) as asking, closing(Pipe(theirs)) as pipe:
            asking.put(ForecastTask(STEP, 0.0, HORIZON_S, False, HORIZON_S), histories)
            nothing = local.DirectoryLayouts(b"", {})
            asking.put(Choose(UsableOsts(OSTS, {}), nothing, layout_policy(LayoutSettings()), False))
            work.serve(pipe)
    finally:
        for history in histories:
            os.close(history)


def _history() -> int:
    """A descriptor of a run."""
    files = tuple(
        FileRecord(f"/d/{n}", f"/d/{n}", "/d/#", 0, (0,), 0, n, 0.1 * n, (1 + n % 3) * GIB)
        for n in range(FILES)
    )
    descriptor = os.memfd_create("tarazu-made-up")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(encode_run(RunRecord(STEP, 1.0, 2.0, "light", files, 1, 1)))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
