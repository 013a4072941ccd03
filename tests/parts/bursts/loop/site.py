"""A private Slurm of four leaf switches with the submit plugin, and tarazu-burstd beside it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tarazu import config
from tarazu.batch.jobs import Job
from tarazu.batch.node_set import unfold
from tarazu.parts.bursts.burstd import node_part
from tarazu.parts.bursts.burstd.answering import VERSION, AboutJob
from tarazu.parts.bursts.burstd.history import ALIVE
from tarazu.parts.bursts.burstd.jobs import UNTIL, Jobs
from tarazu.parts.bursts.burstd.kept import BurstsDirectory
from tarazu.parts.bursts.burstd.node_part import set_mode
from tarazu.parts.bursts.measures.characteristics import JobBytes
from tarazu.parts.bursts.settings import options_of
from tarazu.parts.bursts.slurm import Kind, plugin
from tarazu.parts.changes.ordered import Mode
from tarazu.units import GIB
from tests.loop.slurm import Slurm

LEAVES, NODES = 4, 16
PATIENCE_S = 300.0
READ_AGAIN = "settings read again"
"""Only how long a test may hang before it fails."""
NO_PLUGIN = (
    "function slurm_job_submit() return slurm.SUCCESS end\nslurm_job_modify = slurm_job_submit\nreturn 0\n"
)
READY = "ready"
"""An application that is always remembered."""
ANSWER_S = 60.0
"""Where the machine is busy with other tests, and what is tested is not the time."""


def remember(directory: Path, user: str, shares: Mapping[str, list[float]], jobs: int = 6) -> None:
    """As if so many jobs of each application had run an hour ago; its bytes: on each node, in GiB."""
    directory.mkdir(parents=True, exist_ok=True)
    now = time.time()
    kept = Jobs(directory / "jobs.db")
    kept.note(UNTIL, now)
    kept.note(ALIVE, now)
    moved = []
    for number, (name, gib) in enumerate({**shares, READY: [20.0, 20.0]}.items()):
        nodes = tuple(f"n{i + 1}" for i in range(len(gib)))
        for i in range(jobs):
            begin = now - 7200 + 600 * i
            job = Job(f"{90000 + 100 * number + i}", user, name, nodes, begin, begin + 300, begin)
            moved.append(JobBytes(job, (np.array(gib) * GIB).astype(np.int64)))
    kept.put(each.job for each in moved)
    kept.add_moved(moved)
    kept.close()


def ask_to_look(path: Path, timeout_s: float) -> None:
    """As Slurm's plugin; the daemon looks at Slurm soon."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout_s)
        sock.connect(str(path))
        sock.sendall(msgspec.json.encode(AboutJob(VERSION, READY, 2, 0, "root", waits=True)) + b"\n")
        sock.recv(65536)


class Bursts:
    """`slurm` is up; `directory` is for the rest."""

    def __init__(self, directory: Path, slurm: Slurm, nodes: int = NODES, leaves: int = LEAVES) -> None:
        self.nodes, self.of_leaf = nodes, nodes // leaves
        self.directory, self.slurm = directory, slurm
        self.kept = directory / "tarazu-burstd"
        self.socket = directory / "socket"
        self.config = directory / "tarazu.toml"
        self.env = {**os.environ, **slurm.env}
        self.daemon: subprocess.Popen[bytes] | None = None
        self._plugin_s = 0

    def configure(self, **own: object) -> None:
        own = {
            "socket": str(self.socket),
            "nodes": "apply",
            "per_io_node": 1,
            **own,
        }
        lines = "".join(
            f"{k} = {json.dumps(v) if isinstance(v, (str, bool)) else v}\n" for k, v in own.items()
        )
        self.config.write_text(
            f"[keys]\ninsecure = true\n[state]\ndirectory = '{self.directory}'\n[run]\nstop_file = ''\n"
            f"[part.bursts]\n{lines}"
        )

    def install(self, kind: Kind, answer_s: float) -> str:
        """The plugin's text."""
        return plugin(kind, options_of(config.load(str(self.config))), answer_s)

    def plugin(self, answer_s: float, more: str = "") -> None:
        """Of slurmctld, which looks at its file at each submission; 0: one that does nothing.

        `more`: lines of Lua before its functions.
        """
        path = self.slurm.directory / "job_submit.lua"
        beside = path.with_name("job_submit.new")
        text = self.install("job_submit", answer_s) if answer_s else NO_PLUGIN
        beside.write_text(text.replace("\nfunction slurm_job_submit", f"{more}\nfunction slurm_job_submit"))
        self._plugin_s = max(self._plugin_s, int(time.time())) + 1  # it looks at whole seconds
        os.utime(beside, (self._plugin_s, self._plugin_s))
        beside.replace(path)

    def start(self, wait_s: float = node_part.WAIT_S) -> None:
        """Returns when it knows Slurm's nodes and applications. `wait_s`: how long a job may wait for its nodes."""
        program = (
            "import sys; from tarazu.parts.bursts.burstd import node_part, service; "
            f"node_part.WAIT_S, service.STATUS_S, service.LOOK_S = {wait_s}, 0.1, 0.1; "
            "sys.exit(service.main(sys.argv[1:]))"
        )
        with (self.directory / "burstd.log").open("a") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, "-c", program, "--config", str(self.config)],
                env=self.env,
                stdout=log,
                stderr=log,
            )
        self.until(lambda: self.socket.exists() and self._ready())

    def _ready(self) -> bool:
        """Slurm was seen, and what was remembered is known."""
        ask_to_look(self.socket, PATIENCE_S)
        status = self.status()
        whys = {row["name"]: row["why"] for row in status["applications"]}
        return status["slurm"] == "seen" and whys.get(READY) == "it does not start now"

    def signal(self, number: signal.Signals) -> None:
        assert self.daemon is not None
        self.daemon.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.daemon.wait()
            self.daemon = None

    def stop(self) -> None:
        if self.daemon is not None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)

    def tarazu(self, *words: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tarazu", *words[:2], "--config", str(self.config), *words[2:]],
            env=self.env,
            capture_output=True,
            text=True,
            check=check,
            **more,
        )

    def status(self) -> dict[str, Any]:
        now_s, limit = time.time(), time.monotonic() + PATIENCE_S
        while (told := BurstsDirectory(self.kept).told()).get(
            "written_s", 0.0
        ) <= now_s or "nodes" not in told:
            assert time.monotonic() < limit, self.log()
            time.sleep(0.02)
        return told["nodes"]  # type: ignore[no-any-return]

    def record(self, name: str) -> dict[str, Any]:
        """What was done for an application; nothing where nobody asked about it."""
        rows = self.status()["applications"]
        return next((row for row in rows if row["name"] == name), {"asked": 0, "why": ""})

    def order(self, mode: Mode) -> None:
        """As `tarazu change bursts nodes --MODE`; returns when the daemon does so."""
        set_mode(config.load(str(self.config)), mode, "a test")
        if self.daemon is not None:
            self.until(lambda: self.status()["mode"] == mode)

    def reload(self, **own: object) -> None:
        """Until the daemon has read its settings again: what comes next may be asked at once."""
        log = self.directory / "burstd.log"
        before = log.read_text().count(READ_AGAIN)
        self.configure(**own)
        self.signal(signal.SIGHUP)
        self.until(lambda: log.read_text().count(READ_AGAIN) > before)

    def submit(self, *options: str, runs_s: float = 60, program: str = "sbatch") -> str:
        """The job's id. It must be taken."""
        words = [program, "--parsable", "-o", "/dev/null", "--exclusive", *options]
        return self.run(*words, "--wrap", f"sleep {runs_s}").strip()

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr, self.log())
        return done.stdout

    def job(self, id: str) -> dict[str, str]:
        words = self.run("scontrol", "show", "job", "-o", id).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def started(self, id: str) -> dict[str, str]:
        self.until(lambda: self.job(id)["JobState"] in ("RUNNING", "COMPLETED"))
        return self.job(id)

    def leaves(self, id: str) -> int:
        """On how many leaf switches it runs, or ran."""
        nodes = unfold(self.started(id)["NodeList"])
        return len({math.ceil(int(node[1:]) / self.of_leaf) for node in nodes})

    def until(self, true: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < limit, self.log()
            ask_to_look(self.socket, 0.2)
            time.sleep(0.05)

    def cancel(self) -> None:
        """All jobs; returns when all nodes are idle, and the daemon knows it."""
        self.run("scancel", "--signal=KILL", "--user=root")
        self.run("scancel", "--user=root")
        self.until(lambda: not self.run("squeue", "-h") and self.slurm.idle() == self.nodes)
        if self.daemon is not None:
            self.until(lambda: self.status()["idle"] == self.nodes)

    def log(self) -> str:
        path = self.directory / "burstd.log"
        return (path.read_text()[-3000:] if path.exists() else "") + self.slurm.log()
