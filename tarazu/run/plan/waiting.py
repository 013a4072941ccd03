"""What a plan is waited for, while it is: who has to answer, and for how long he has not."""

from __future__ import annotations

import time

from tarazu import left
from tarazu.left import NotPlaced

SILENT_S = 1.0
"""clientd says at once what it does, and mdsd how it is: who is silent for longer is called so."""
WHAT = {
    "": "clientd has not answered",
    "turn": "clientd has other plans to make",
    "forecast": "clientd has been forecasting",
    "mdsd": "mdsd has not answered",
    "allocation": "mdsd has been choosing OSTs",
    "writing": "clientd has been writing the plan down",
}
"""`local.PlanStage.stage`, empty before the first → what takes so long."""


class Waiting:
    """For the plans of one step on one file system. Its planning thread writes, the end of the step reads."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._stage = ("", 0.0)

    def begin(self) -> None:
        """A plan is asked for now."""
        self._stage = ("", time.monotonic())
        self._asked_at = self._stage[1]

    def at(self, stage: str) -> None:
        """clientd says what it does."""
        self._stage = (stage, time.monotonic())

    def end(self) -> None:
        """It has answered, or failed."""
        self._asked_at = None

    def why(self) -> NotPlaced | None:
        """Why there is no plan yet; None where none is waited for."""
        asked_at, (stage, since) = self._asked_at, self._stage
        if asked_at is None:
            return None
        now = time.monotonic()
        for_s, all_s = now - since, now - asked_at
        what = f"{WHAT.get(stage, stage)} for {for_s:.1f} s"
        silent = stage in ("", "mdsd") and for_s > SILENT_S
        whole = f"no plan within {all_s:.1f} s: "
        return NotPlaced(left.SILENT if silent else left.TOO_LATE, whole + what)
