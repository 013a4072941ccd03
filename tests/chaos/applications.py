"""Unmodified programs under `tarazu run`, job after job: every file is there with its bytes, and nobody notices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tarazu.sim.testbed.library import library_directory
from tests.chaos.site import Site
from tests.chaos.worker import Worker

RANKS, STEPS, BLOCK = 3, 3, 64 << 10
LONGEST_S = 60.0
"""A job takes about two seconds; one that hangs has been held up by tarazu."""
STEPPED = """
for step in $(seq 0 {last}); do
    "$0" -F -n {ranks} -b {block} -t {block} -o "$1/step$step.{{rank}}"
    sleep 0.2
done
"""


class Jobs(Worker):
    """One application, run again and again on the first client."""

    def __init__(self, site: Site, number: int) -> None:
        super().__init__(f"chaos-jobs-{number}")
        self.site, self.number = site, number

    def run(self) -> None:
        self.site.enter("client")
        while not self._end.is_set():
            if self._rest.is_set():
                self.resting.set()
                self._end.wait(0.05)
                continue
            try:
                self._job()
            except Exception as error:
                self.wrong.append(f"{self.name}: {type(error).__name__}: {error}")
        self.resting.set()

    def _job(self) -> None:
        bed = self.site.testbed
        folder = bed.client_mount() / f"jobs{self.number}"
        script = STEPPED.format(last=STEPS - 1, ranks=RANKS, block=BLOCK)
        words = ["run", "--app", f"jobs{self.number}", "--mode", "place", "--", "sh", "-ec", script]
        words += [str(library_directory() / "testbed" / "iorlike"), str(folder)]
        done = subprocess.run(
            [sys.executable, "-m", "tarazu", *words],
            env=os.environ | bed.environment(0),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
        self.counts["jobs"] += 1
        if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
            self.wrong.append(f"{self.name}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}")
        for step in range(STEPS):
            for rank in range(RANKS):
                path = folder / f"step{step}.{rank}"
                if not path.exists() or path.read_bytes() != bytes([ord("a") + rank]) * BLOCK:
                    self.wrong.append(f"{self.name}: {path.name} is missing or holds other bytes")
                else:
                    self.counts["files"] += 1
                    self.counts["placed files"] += len(bed.layout(path).osts[0]) == 2
        shutil.rmtree(folder, ignore_errors=True)
