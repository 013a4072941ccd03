"""The system changes while it is in use: the servers' disks are replaced; when is the best window found again?

Situation F's writes, one phase without an end; after some time all disks are others. Which windows are good there is
told by runs under each alone. Seconds are the daemons'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from tarazu.parts.council.study.control import FIRST, Control, Manner, described
from tarazu.parts.council.study.requests.simulate import Setting, SystemChange, simulate
from tarazu.parts.council.study.requests.situation import INTERVAL_S, TABLE_III, WINDOWS_S
from tarazu.parts.council.study.requests.system import GRID5000
from tarazu.parts.council.study.requests.workload import Workload
from tarazu.sim.study.case import Case

FASTER = 4.0
"""The other disks turn, seek and transfer so many times faster."""
BEFORE_S, AFTER_S = 120, 200
ALONE_S = 60
"""Of a run under one window."""
NEARLY = 0.97
"""Of the best window's rate: as good as the best."""
LOOK_S = 20
"""A window counts as found when most of so many seconds have it."""
ENDLESS = 1 << 40

To = Literal["faster", "slower"]


class Replaced(Case, frozen=True):
    """One run in which the disks are replaced."""

    to: To
    manner: Manner | None
    """None: one window for all, and the disks are the other ones from the start."""
    window: int = FIRST
    seed: int = 1

    @property
    def label(self) -> str:
        how = described(self.manner, self.window)
        return f"disks are replaced by {self.to} ones, {how}, seed {self.seed}"

    @property
    def weight(self) -> float:
        return 100.0 * (BEFORE_S + AFTER_S if self.manner else ALONE_S)


class Course(NamedTuple):
    """What came of it, second by second."""

    case: Replaced
    windows: tuple[int, ...]
    bytes_per_s: tuple[float, ...]
    """Of all I/O nodes."""

    def rate(self, begin_s: int = 0) -> float:
        """Mean from there on."""
        part = self.bytes_per_s[begin_s:]
        return sum(part) / len(part)


def rows(case: Replaced, progress: object = None) -> list[Course]:
    """Compute a case."""
    other = GRID5000.disk.faster(FASTER)
    before, after = (GRID5000.disk, other) if case.to == "faster" else (other, GRID5000.disk)
    learns = case.manner is not None
    phase = TABLE_III["F"]._replace(operation="write").phase()._replace(total_bytes=ENDLESS, part=1)
    outcome = simulate(
        Workload(TABLE_III["F"].nodes, (phase,)),
        Setting("twins", WINDOWS_S[case.window]),
        case.seed,
        controller=Control(case.manner, case.seed) if case.manner else None,
        system=GRID5000._replace(disk=before if learns else after),
        changes=(SystemChange(BEFORE_S * INTERVAL_S, after),) if learns else (),
        until_s=(BEFORE_S + AFTER_S if learns else ALONE_S) * INTERVAL_S,
        features=case.manner is not None and case.manner.classifier,
    )
    windows, rates = [], []
    for _, nodes in groupby(outcome.seen, key=lambda seen: seen.at_s):
        of_all = list(nodes)
        windows.append(WINDOWS_S.index(of_all[0].window_s))
        rates.append(sum(seen.observation.bytes_per_s for seen in of_all))
    return [Course(case, tuple(windows), tuple(rates))]


def rates_alone(fixed: Sequence[Course]) -> dict[int, float]:
    """Window → mean rate over seeds, of courses of each window alone."""
    of: dict[int, list[float]] = {}
    for course in fixed:
        of.setdefault(course.case.window, []).append(course.rate())
    return {window: sum(rates) / len(rates) for window, rates in of.items()}


def good(rates: Mapping[int, float]) -> set[int]:
    """Windows that are as good as the best."""
    return {window for window, rate in rates.items() if rate >= NEARLY * max(rates.values())}


def found_again_s(windows: Sequence[int], wanted: set[int], begin_s: int = BEFORE_S) -> float:
    """Seconds from `begin_s` until a stretch of LOOK_S begins most of which has one of the windows; infinite where
    none does."""
    for begin in range(begin_s, len(windows) - LOOK_S + 1):
        hits = sum(window in wanted for window in windows[begin : begin + LOOK_S])
        if windows[begin] in wanted and 2 * hits > LOOK_S:
            return float(begin - begin_s)
    return float("inf")
