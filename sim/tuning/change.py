"""The system changes while it is in use: the servers' disks are replaced; when is the best window found again?

The benchmark's situation F, one phase without an end; after some time all disks are others. The rate of each window
before and after is that of runs under it alone. Seconds are the daemons'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from tarazu.sim.requests.simulate import Change, Setting, simulate
from tarazu.sim.requests.situation import INTERVAL_S, TABLE_III, WINDOWS, WINDOWS_S
from tarazu.sim.requests.system import GRID5000
from tarazu.sim.requests.workload import Workload
from tarazu.sim.tuning.control import FIRST, Control, Manner

FASTER = 4.0
"""The other disks turn, seek and transfer so many times faster."""
BEFORE_S, AFTER_S = 120, 120
NEARLY = 0.97
"""Of the best window's rate: as good as the best."""
LOOK_S = 20
"""A window counts as found when most of so many seconds have it."""
ENDLESS = 1 << 40


class Replaced(NamedTuple):
    """One run in which the disks are replaced. A case of `study.runner`."""

    operation: Literal["read", "write"]
    to: Literal["faster", "slower"]
    manner: Manner | None
    """None: one window for all."""
    window: int = FIRST
    seed: int = 1

    @property
    def id(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        how = self.manner.name if self.manner else WINDOWS[self.window]
        return f"disks are replaced by {self.to} ones, {self.operation}, {how}, seed {self.seed}"

    @property
    def weight(self) -> float:
        return FASTER * BEFORE_S * 100

    @property
    def computed_by(self) -> str:
        return __name__


class Course(NamedTuple):
    """What came of it, second by second."""

    case: Replaced
    windows: tuple[int, ...]
    bytes_per_s: tuple[float, ...]
    """Of all I/O nodes."""

    def rate(self, begin_s: int, end_s: int) -> float:
        """Mean of the seconds from `begin_s` to before `end_s`."""
        part = self.bytes_per_s[begin_s:end_s]
        return sum(part) / len(part)


def rows(case: Replaced, progress: object = None) -> list[Course]:
    """Compute a case."""
    other = GRID5000.disk.faster(FASTER)
    before, after = (GRID5000.disk, other) if case.to == "faster" else (other, GRID5000.disk)
    phase = TABLE_III["F"]._replace(operation=case.operation).phase(1)._replace(total_bytes=ENDLESS)
    outcome = simulate(
        Workload(TABLE_III["F"].nodes, (phase,)),
        Setting("twins", WINDOWS_S[case.window]),
        case.seed,
        controller=Control(case.manner, case.seed) if case.manner else None,
        system=GRID5000._replace(disk=before),
        changes=(Change(BEFORE_S * INTERVAL_S, after),),
        until_s=(BEFORE_S + AFTER_S) * INTERVAL_S,
        features=case.manner is not None and case.manner.classifier,
    )
    windows, rates = [], []
    for _, nodes in groupby(outcome.seen, key=lambda seen: seen.at_s):
        of_all = list(nodes)
        windows.append(WINDOWS_S.index(of_all[0].window_s))
        rates.append(sum(seen.observation.bytes_per_s for seen in of_all))
    return [Course(case, tuple(windows), tuple(rates))]


def good(fixed: Sequence[Course]) -> set[int]:
    """Windows that are as good as the best after the change; `fixed`: courses of each window alone."""
    after: dict[int, list[float]] = {}
    for course in fixed:
        after.setdefault(course.case.window, []).append(course.rate(BEFORE_S, BEFORE_S + AFTER_S))
    means = {window: sum(rates) / len(rates) for window, rates in after.items()}
    return {window for window, mean in means.items() if mean >= NEARLY * max(means.values())}


def found_again_s(windows: Sequence[int], wanted: set[int], begin_s: int = BEFORE_S) -> float:
    """Seconds from `begin_s` until a stretch of LOOK_S begins most of which has one of the windows; infinite where
    none does."""
    for begin in range(begin_s, len(windows) - LOOK_S + 1):
        hits = sum(window in wanted for window in windows[begin : begin + LOOK_S])
        if windows[begin] in wanted and 2 * hits > LOOK_S:
            return float(begin - begin_s)
    return float("inf")
