"""Which nodes are whose job's, as the batch system says: `squeue`, or a file that the site's own scripts keep.

Looked at by a thread, so that a slow controller holds up nothing. While it does not answer, what it said last holds for
`KEPT_S`; then no job has nodes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from tarazu import reading
from tarazu.batch import jobs
from tarazu.batch.jobs import JobNodes
from tarazu.batch.slurm import Slurm
from tarazu.errors import TarazuError
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

EVERY_S = 10.0
KEPT_S = 600.0
MAX_BYTES = 32 << 20


class Scheduler:
    """`start` begins to look; `jobs` is the newest answer."""

    def __init__(self, source: str, every_s: float = EVERY_S) -> None:
        """`source`: `slurm`, or the path of a file."""
        self.source = source
        self.every_s = every_s
        self._slurm = Slurm()
        self.problem = ""
        self._jobs: Mapping[str, JobNodes] = {}
        self._seen = float("-inf")
        self._ended = threading.Event()
        self._said = SaidOnce(log)

    def start(self) -> None:
        threading.Thread(target=self._keep_looking, name="tarazu-scheduler", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    @property
    def jobs(self) -> Mapping[str, JobNodes]:
        """Job → whose it is, and where it runs."""
        return self._jobs if time.monotonic() - self._seen < KEPT_S else {}

    def _keep_looking(self) -> None:
        while True:
            began = time.monotonic()
            self.look()
            took_s = time.monotonic() - began
            if self._ended.wait(max(self.every_s, 5 * took_s)):
                return

    def look(self) -> None:
        """Ask once."""
        try:
            self._jobs, self._seen, self.problem = self._ask(), time.monotonic(), ""
        except TarazuError as error:
            self.problem = str(error)
            self._said.warning(self.problem)

    def _ask(self) -> Mapping[str, JobNodes]:
        if self.source == "slurm":
            return self._slurm.nodes_of_jobs()
        return jobs.nodes_of_jobs(reading.text(self.source, MAX_BYTES), self.source)
