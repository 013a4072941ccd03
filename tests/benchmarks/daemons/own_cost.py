"""What tarazu itself costs a job: before its program starts, beside it, after its end, and in each recorded process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path
from statistics import median

import tarazu
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.testbed import Testbed
from tests.benchmarks.figure import Figure

CALL = re.compile(r"(\d+ +)?\w+\(")
"""A line of strace's that is one."""
FRAME = re.compile(r" > (?:[^()]*/)?([^()/]+)\(")
"""A line of strace's that says in which file a caller is."""
RUNS = 15
ROUNDS = 5
BESIDE_S = 10.0
MANY = 1_000
WRITERS, JOB_S = 16, 3.0
NOTHING = ["true"]

FILES = """
import os, sys, time
directory, files, ended = sys.argv[1], int(sys.argv[2]), sys.argv[3]
for n in range(files):
    os.close(os.open(f"{directory}/f{n}", os.O_CREAT | os.O_WRONLY, 0o644))
open(ended, "w").write(str(time.monotonic()))
"""
JOB = """
import os, sys, time
directory, writers, seconds, took = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
begin = time.monotonic()
for n in range(writers):
    if not os.fork():
        fd = os.open(f"{directory}/w{n}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        for part in range(24):
            os.write(fd, b"x" * 65536)
            time.sleep(seconds / 24)  # the disk's
        os.close(fd)
        os._exit(0)
for n in range(writers):
    os.wait()
open(took, "w").write(str(time.monotonic() - begin))
"""
"""A job that waits for its disks: what shares its processor with it makes it longer only where it computes."""
PROCESS = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int count, char **words) {
    struct rusage used;
    char host[65];
    gethostname(host, sizeof host);
    for (int i = 1; i < count; i++) close(open(words[i], O_CREAT | O_WRONLY, 0644));
    getrusage(RUSAGE_SELF, &used);
    printf("%ld", used.ru_minflt);
    return 0;
}
"""
"""The name of its host comes from the testbed's own library, which looks around at the first question."""
LIBRARIES = {"ld-linux": "loader", "libtestbed": "testbed", "libtarazu.so": "library"}
"""What a file's name begins with → whose calls to the kernel are made there; all others are the program's."""


def measure(short: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="tarazu-own-cost-") as folder:
        testbed = testbeds.up(Path(folder) / "tb", clients=1)
        try:
            # The testbed's command to fetch spools of its other clients is no part of a step on one node.
            run = {"gather": "auto"}
            configure(testbed, {"layout": {"min_size": 0}, "allocate": {"least_gain": -1.0}, "run": run})
            testbed.start_daemons()
            wait_until_ready(testbed)
            return _measured(_Site(testbed, Path(folder)), 3 if short else RUNS)
        finally:
            testbeds.down(testbed.directory)


class _Site:
    def __init__(self, testbed: Testbed, work: Path) -> None:
        self.environ = {**os.environ, **testbed.environment(0)}
        self.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed tarazu is compiled
        self.mount = testbed.mount
        self.work = work
        self.note = work / "note"
        self.python = str(_installed(work))

    def lead(self, *program: str, app: str, mode: str) -> list[str]:
        return [
            self.python,
            "-P",
            "-c",
            "import sys; from tarazu.cli import main; sys.exit(main())",
            "run",
            "--app",
            app,
            "--mode",
            mode,
            "--",
            *program,
        ]

    def call(self, words: list[str], cpu: int | None = None) -> tuple[float, float, int]:
        """(CPU s of it and its children, elapsed s, page faults)."""
        pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
        begin = time.monotonic()
        process = subprocess.Popen([*pinned, *words], env=self.environ)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise RuntimeError(f"{words}: status {process.returncode}")
        return used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_minflt

    def system_calls(self, words: list[str]) -> int:
        """Of a command and all that it starts; 0 where there is no strace."""
        if not shutil.which("strace"):
            return 0
        out = self.work / "calls"
        self.call(["strace", "-f", "-o", str(out), *words])
        return sum(1 for line in out.read_text().splitlines() if CALL.match(line))

    def printed(self, words: list[str]) -> int:
        """The number that a command prints."""
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, check=True)
        return int(done.stdout)

    def calls_of(self, program: list[str], app: str = "") -> Counter[str]:
        """Whose system calls a program makes; app: as a step of that application. Empty where there is no strace that
        shows who called.
        """
        out = self.work / "calls"
        traced = ["strace", "-k", "-o", str(out), *program]
        words = self.lead(*traced, app=app, mode="observe") if app else traced
        if not shutil.which("strace") or "no-stack-trace" in _version_of_strace():
            return Counter()
        self.printed(words)
        return _callers(out.read_text().splitlines())


def _version_of_strace() -> str:
    shown = subprocess.run(["strace", "-V"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return shown if "stack-trace=" in shown else "no-stack-trace"


def _callers(lines: list[str]) -> Counter[str]:
    """Each call is followed by the functions that led to it, the innermost first: libc's make it for others."""
    whose: list[str] = []
    is_known = True
    for line in lines:
        if CALL.match(line):
            whose.append("program")
            is_known = False
        elif not is_known and (frame := FRAME.match(line)) and not frame[1].startswith("libc.so"):
            whose[-1] = next((of for name, of in LIBRARIES.items() if frame[1].startswith(name)), "program")
            is_known = True
    return Counter(whose)


def _installed(work: Path) -> Path:
    """A Python with tarazu as a wheel has it, and what a leader needs beside it: an editable install looks for each
    module in its own way, which takes a while at each start.
    """
    venv.create(work / "site", symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(work / "site")}))
    (packages / "msgspec").symlink_to(Path(sysconfig.get_path("platlib")) / "msgspec")
    (packages / "tarazu").mkdir()
    for entry in (entry for folder in tarazu.__path__ for entry in Path(folder).iterdir()):
        if entry.name != "__pycache__":
            (packages / "tarazu" / entry.name).symlink_to(entry)
    return work / "site/bin/python"


def _measured(site: _Site, runs: int) -> list[Figure]:
    figures = []
    alone = [site.call([site.python, "-c", "pass"]) for _ in range(runs)]
    python_s = min(cpu for cpu, _, _ in alone)
    figures.append(Figure("Python alone, that does nothing: CPU", 1e3 * python_s, "ms"))
    for mode, goal_ms in (("observe", 150.0), ("place", 250.0)):
        site.call(site.lead(*_files(site, 16), app="sixteen", mode="observe"))
        words = site.lead(*NOTHING, app="sixteen", mode=mode)
        found = [site.call(words) for _ in range(runs)]
        cpu_s = min(cpu for cpu, _, _ in found)
        said = f"tarazu run --mode {mode} -- true"
        figures += [
            Figure(f"{said}: CPU", 1e3 * cpu_s, "ms", goal=60.0 if mode == "observe" else None),
            Figure(f"{said}: CPU, in starts of Python", cpu_s / python_s, ""),
            Figure(f"{said}: elapsed", 1e3 * median(elapsed for _, elapsed, _ in found), "ms", goal=goal_ms),
            Figure(f"{said}: page faults", median(faults for _, _, faults in found), ""),
            Figure(f"{said}: system calls", site.system_calls(words), ""),
        ]
    figures += [*_end(site, runs), *_beside(site), *_process(site), *_pinned(site, 3 if runs < RUNS else 7)]
    return figures


def _files(site: _Site, files: int) -> list[str]:
    return [sys.executable, "-c", FILES, str(site.mount), str(files), str(site.note)]


def _end(site: _Site, runs: int) -> list[Figure]:
    late_ms = []
    for _ in range(runs):
        site.call(site.lead(*_files(site, MANY), app="many", mode="observe"))
        late_ms.append(1e3 * (time.monotonic() - float(site.note.read_text())))
    return [
        Figure(
            f"after the end of a program with {MANY:,} files, Python's own included",
            median(late_ms),
            "ms",
            goal=100.0,
        )
    ]


def _beside(site: _Site) -> list[Figure]:
    figures = []
    for mode in ("observe", "place"):
        words = site.lead("sleep", str(BESIDE_S + 6), app="sixteen", mode=mode)
        with subprocess.Popen(words, env=site.environ) as process:
            time.sleep(4.0)  # all is loaded, and what is to be planned is
            cpu_s, wakings = _used(process.pid)
            time.sleep(BESIDE_S)
            after_s, woken = _used(process.pid)
        figures += [
            Figure(
                f"beside a program, {mode}: CPU a second", 1e3 * (after_s - cpu_s) / BESIDE_S, "ms", goal=1.0
            ),
            Figure(f"beside a program, {mode}: wakings a second", (woken - wakings) / BESIDE_S, ""),
        ]
    return figures


def _used(pid: int) -> tuple[float, int]:
    """(CPU s, wakings) of all threads of a process."""
    cpu_s, wakings = 0.0, 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        cpu_s += int((thread / "schedstat").read_text().split()[0]) / 1e9
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)
        wakings += int(found[1]) if found else 0
    return cpu_s, wakings


def _process(site: _Site) -> list[Figure]:
    source, program = site.work / "process.c", site.work / "process"
    source.write_text(PROCESS)
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    figures = []
    for files in (0, 1, 100):
        words = [str(program), *(f"{site.mount}/p{n}" for n in range(files))]
        led_words = site.lead(*words, app="process", mode="observe")
        # The first process of a step finds less in memory, and the kernel maps what lies around a page as it likes.
        more, bare = (min(site.printed(of) for _ in range(ROUNDS)) for of in (led_words, words))
        calls = site.calls_of(words)
        said, few = f"a recorded process that opens {files} files", files < 2
        figures.append(Figure(f"{said}: page faults more", more - bare, "", goal=20.0 if few else None))
        if not calls:
            continue
        led = site.calls_of(words, app="process")
        beside = {whose: led[whose] - calls[whose] for whose in ("loader", "testbed")}
        library = led.total() - calls.total() - sum(beside.values())
        figures += [
            Figure(f"{said}: system calls more, the library's own", library, "", goal=12.0 if few else None),
            *(Figure(f"{said}: system calls more, the {whose}'s", n, "") for whose, n in beside.items()),
        ]
    return figures


def _pinned(site: _Site, runs: int) -> list[Figure]:
    """All on one processor, without and with tarazu by turns."""
    words = [sys.executable, "-c", JOB, str(site.mount), str(WRITERS), str(JOB_S), str(site.note)]
    job_s: dict[str, list[float]] = {"": [], "observe": [], "place": []}
    whole_s: dict[str, list[float]] = {name: [] for name in job_s}
    for _ in range(runs):
        for mode, took_s in job_s.items():
            _, elapsed_s, _ = site.call(site.lead(*words, app="job", mode=mode) if mode else words, cpu=0)
            took_s.append(float(site.note.read_text()))
            whole_s[mode].append(elapsed_s)
    figures = []
    for mode in ("observe", "place"):
        figures += [
            Figure(
                f"on one processor, {WRITERS} writers of {JOB_S:g} s, {mode}: their time over that without tarazu",
                median(job_s[mode]) / median(job_s[""]), "", goal=1.03,
            ),
            Figure(
                f"on one processor, {WRITERS} writers, {mode}: the whole command more",
                1e3 * (median(whole_s[mode]) - median(whole_s[""])), "ms", goal=300.0,
            ),
        ]  # fmt: skip
    return figures
