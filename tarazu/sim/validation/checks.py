"""The validations in the order in which `tarazu sim validate` runs them; docs/validation.md says what each is worth."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

import msgspec

from tarazu.errors import BadInput, Unavailable
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow

Rows = Callable[[bool, Progress], Sequence[ValidationRow]]


class Check(msgspec.Struct, frozen=True):
    """One validation: a module of this package with `rows(full, progress) -> rows`."""

    name: str
    about: str
    module: str


CHECKS = (
    Check("closed-forms", "flows whose finish times a formula gives", "closed_forms"),
    Check("simgrid", "the same networks in SimGrid (model CM02)", "simgrid"),
    Check("table-6", "IOR on Titan, 9 rows measured; calibrated on 3, predicting 6", "table6"),
    Check("badost", "a real job with a sick OST: even ranks predict odd ones", "badost"),
    Check("hacc-ior", "OST utilization beside that of the real daemons (section 6.4)", "hacc_ior"),
    Check("figure-22", "read and write throughput of IOR and HACC-IO on the paper's cluster", "figure22"),
    Check("figure-23", "the scalability study: 160 to 3,600 OSTs, three applications at once", "figure23"),
    Check("closed-loop", "ten runs in a row, sizes drift, one OST is slow for a time", "closed_loop"),
    Check("large", "100,000 OSTs: time and memory", "large"),
    Check("same-seed", "the same seed gives the same result, bit for bit", "same_seed"),
)
NAMES = tuple(check.name for check in CHECKS)


class Checked(msgspec.Struct, frozen=True):
    """What came of one validation."""

    name: str
    about: str
    rows: tuple[ValidationRow, ...]
    seconds: float
    peak_bytes: int
    """Most memory that this process ever had, so far."""
    unavailable: str = ""
    """Why it could not be run here; empty when it was."""

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows)


def chosen(names: Sequence[str] = ()) -> tuple[Check, ...]:
    """The checks of those names, all of them without any. Raises BadInput."""
    for name in names:
        if name not in NAMES:
            raise BadInput("validate", f"one of {', '.join(NAMES)}", name)
    return tuple(check for check in CHECKS if not names or check.name in names)


def run(check: Check, full: bool = False, progress: Progress = lambda text: None) -> Checked:
    """Run one. full: as docs/validation.md reports it, which takes minutes; else its short form of seconds."""
    started, reason = time.monotonic(), ""
    rows: tuple[ValidationRow, ...] = ()
    try:
        module = import_module(f"tarazu.sim.validation.{check.module}")
        rows = tuple(cast("Rows", module.rows)(full, progress))
    except Unavailable as error:
        reason = str(error)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Checked(check.name, check.about, rows, time.monotonic() - started, peak, reason)
