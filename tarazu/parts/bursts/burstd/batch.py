"""What Slurm says of jobs; asked by a thread, so that a slow one holds up nothing.

squeue tells which jobs run, and for some minutes which have ended; sacct, where there is accounting, also what was
missed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tarazu.batch.jobs import Listed
from tarazu.batch.slurm import Slurm
from tarazu.errors import TarazuError
from tarazu.parts.bursts.traffic import machine as machines
from tarazu.parts.bursts.traffic.machine import Machine
from tarazu.past import no_later
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.bursts")

EVERY_S = 30.0
ANSWER_S = 60.0
OVERLAP_S = 3600.0
"""sacct is asked again for what it was asked for before: it learns of ends late."""
FIRST_S = 7 * 86400.0
"""So far back it is asked first."""
WITHOUT_S = 3600.0
"""Until sacct is asked again that could not answer: a site may have no accounting."""


class SlurmAnswer(NamedTuple):
    at_s: float
    """Unix time before it was asked."""
    listed: Listed
    everything: bool
    """Jobs that are not listed do not run."""


class Batch:
    """`take` is called with what is learned, in this thread."""

    def __init__(
        self, take: Callable[[SlurmAnswer], None], *, each: Callable[[], None] = lambda: None
    ) -> None:
        """`each`: called after each look, in this thread too."""
        self.problem = ""
        self.since_s = time.time() - FIRST_S
        """Up to then sacct has answered."""
        self._slurm = Slurm(ANSWER_S)
        self._take, self._each = take, each
        self._sacct_at = 0.0
        self._over = threading.Event()
        self._said = SaidOnce(log)
        self._thread = threading.Thread(target=self._keep_looking, name="tarazu-batch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()

    def _keep_looking(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.look()
                self._each()
            except Exception as error:  # whatever it is, Slurm is asked again
                self.problem = str(error) or type(error).__name__
                self._said.warning(f"jobs: {self.problem}")
            took_s = time.monotonic() - began
            self._over.wait(max(EVERY_S, 5 * took_s))

    def look(self) -> None:
        """Ask once."""
        try:
            self._ask_slurm()
        except TarazuError as error:
            self.problem = str(error)
            self._said.warning(self.problem)
        else:
            self.problem = ""

    def _ask_slurm(self) -> None:
        now = time.time()
        self.since_s = no_later(self.since_s, now - OVERLAP_S)
        if time.monotonic() >= self._sacct_at:
            try:
                listed = self._slurm.ended(self.since_s)
            except TarazuError as error:
                self._sacct_at = time.monotonic() + WITHOUT_S
                log.info("%s: jobs are taken from squeue alone", error)
            else:
                self.since_s = now - OVERLAP_S
                self._tell(SlurmAnswer(now, listed, False))
        now = time.time()
        self._tell(SlurmAnswer(now, self._slurm.jobs(), True))

    def _tell(self, answer: SlurmAnswer) -> None:
        if answer.listed.why:
            self._said.warning(f"jobs: {answer.listed.left} left out: {answer.listed.why}", "left")
        self._take(answer)


def machine_of(setting: str) -> tuple[Machine | None, bool]:
    """Where nodes stand by `part.bursts.machine`: its file, or Slurm's topology; None where there is neither. And
    whether Slurm has a topology. Raises BadInput for a file that cannot be read.
    """
    try:
        topology = Slurm(ANSWER_S).topology()
    except TarazuError as error:
        log.info("no topology: %s", error)
        topology = ""
    known = "SwitchName=" in topology
    if setting:
        return machines.read(Path(setting)), known
    return (machines.parse(topology, "scontrol show topology") if known else None), known
