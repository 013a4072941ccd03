"""The way in: one run, from the first request to the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tarazu.errors import BadInput
from tarazu.parts.council.study.requests.outcome import NodeInterval, RequestsOutcome
from tarazu.parts.council.study.requests.run import RequestRun, RunOptions, Setting, SystemChange
from tarazu.parts.council.study.requests.situation import INTERVAL_S, SCALE, Situation
from tarazu.parts.council.study.requests.system import GRID5000, RequestSystem
from tarazu.parts.council.study.requests.workload import Phase, Workload

__all__ = ["Controller", "Setting", "SystemChange", "simulate"]

Controller = Callable[[float, Sequence[NodeInterval]], "float | Setting | None"]
"""Asked at the end of each interval with the time and what each I/O node saw; answers TWINS' next window, seconds, or
all that schedules next. None: as it is."""


def simulate(
    work: Situation | Workload,
    setting: Setting = Setting(),  # noqa: B008
    seed: int = 0,
    *,
    controller: Controller | None = None,
    system: RequestSystem = GRID5000,
    changes: Sequence[SystemChange] = (),
    part: int = SCALE,
    interval_s: float = INTERVAL_S,
    until_s: float = math.inf,
    features: bool = False,
    requests: bool = False,
) -> RequestsOutcome:
    """Run it until all bytes have moved, or until a time.

    part: of a situation only the first 1/part is run; a workload says it itself. features: observations have those of
    the requests' offsets, for whoever detects patterns; requests: Seen has each request that was done. Both take time.
    Raises BadInput.
    """
    if isinstance(work, Situation):
        work = Workload(work.nodes, (work.phase(part),))
    if work.nodes < 1 or not work.phases:
        raise BadInput(
            "workload", "an I/O node and a phase, at least", f"{work.nodes} and {len(work.phases)}"
        )
    for phase in work.phases:
        _check(phase)
    for change in changes:
        if not all(0 <= number < system.servers for number in change.servers) or not change.at_s >= 0:
            raise BadInput("change", f"servers 0 to {system.servers - 1}, from 0 s on", change[::2])
    if not setting.window_s > 0 or not interval_s > 0:
        raise BadInput("window and interval", "seconds above 0", f"{setting.window_s:g} and {interval_s:g}")
    options = RunOptions(interval_s, until_s, features, requests)
    return RequestRun(work, setting, seed, controller, system, changes, options).run()


def _check(phase: Phase) -> None:
    """Raises BadInput for one that can have no requests, or whose pattern is not what it does."""
    least = min(phase.processes, phase.request_bytes, phase.total_bytes, phase.part)
    if least < 1 or not 0 <= phase.pause_s < math.inf:
        raise BadInput(
            f"phase {phase.name}",
            "processes, bytes and part from 1, a pause from 0 s",
            f"{least}, {phase.pause_s:g} s",
        )
    if phase.spatiality != "contiguous" and (phase.spatiality != "strided" or not phase.shared):
        layout = "a shared file" if phase.shared else "a file each"
        raise BadInput(
            f"phase {phase.name}",
            "contiguous, or strided in a shared file",
            f"{phase.spatiality} in {layout}",
        )
