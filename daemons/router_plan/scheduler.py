"""Which nodes are whose job's, as the batch system says: `squeue`, or a file that the site's own scripts keep.

Looked at by a thread, so that a slow controller holds up nothing. While it does not answer, what it said last holds for
`KEPT_S`; then no job has nodes.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import BadInput
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

SQUEUE = ("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%A %U %N")
"""The id that a job has in its own environment, also where it is part of an array; its user; its nodes, folded."""
EVERY_S = 10.0
ANSWER_S = 30.0
KEPT_S = 600.0
MAX_BYTES = 32 << 20
UID_DIGITS = 10


class Listed(NamedTuple):
    uid: int
    hosts: str
    """Folded."""


class Scheduler:
    """`start` begins to look; `jobs` is the newest answer."""

    def __init__(self, source: str, every_s: float = EVERY_S) -> None:
        """`source`: `slurm`, or the path of a file."""
        self.source = source
        self.every_s = every_s
        self.problem = ""
        self._jobs: Mapping[str, Listed] = {}
        self._seen = float("-inf")
        self._ended = threading.Event()
        self._said = SaidOnce(log)

    def start(self) -> None:
        threading.Thread(target=self._keep_looking, name="tarazu-scheduler", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    @property
    def jobs(self) -> Mapping[str, Listed]:
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
            text = squeue() if self.source == "slurm" else _read(Path(self.source))
            self._jobs, self._seen, self.problem = parse(text, self.source), time.monotonic(), ""
        except BadInput as error:
            self.problem = str(error)
            self._said.warning(self.problem)


def squeue() -> str:
    """What it prints. Raises BadInput."""
    try:
        done = subprocess.run(
            SQUEUE, capture_output=True, stdin=subprocess.DEVNULL, timeout=ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise BadInput("squeue", f"an answer within {ANSWER_S:g} s", "none") from None
    except OSError as error:
        raise BadInput("squeue", "a command that can be run", error.strerror) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BadInput("squeue", "exit status 0", f"{done.returncode}: {said[-1] if said else ''}"[:200])
    return done.stdout[:MAX_BYTES].decode(errors="replace")


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        raise BadInput(str(path), "a readable file", error.strerror) from None


def parse(text: str, where: str) -> dict[str, Listed]:
    """Lines of `JOB UID HOSTS`, `#` begins a comment; a job of several lines has the hosts of all. Raises BadInput."""
    jobs: dict[str, Listed] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        is_uid = len(words) > 1 and words[1].isdecimal() and len(words[1]) <= UID_DIGITS
        if len(words) == 2 and is_uid:
            continue  # it has no nodes (yet)
        if len(words) != 3 or not is_uid:
            raise BadInput(f"{where}:{number}", "a line such as 4711 1000 n[001-004]", line[:60])
        job, uid, hosts = words[0], int(words[1]), words[2]
        known = jobs.get(job)
        if known and known.uid != uid:
            raise BadInput(f"{where}:{number}", f"job {job} to be of one user", f"{known.uid} and {uid}")
        jobs[job] = Listed(uid, f"{known.hosts},{hosts}" if known else hosts)
    return jobs
