"""Kills agents at each system call that does something: `python -m tests.parts.changes.kills [--every N] [LEVER…]`.

For each lever an agent makes one plan, then another one, then takes all back, as a process under strace; it is killed
at the entry of one call, a later one each time. Whoever comes next must leave what was there before.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from tarazu.parts.changes import engine
from tarazu.parts.changes.agent import Plan

from .case import Case
from .cases import CASES

MEMORY = "/dev/shm"
WAIT_S = 60.0
NOTHING = {
    *(
        "access",
        "brk",
        "close",
        "dup",
        "dup2",
        "epoll_create1",
        "fcntl",
        "fstat",
        "futex",
        "getcwd",
        "getdents64",
    ),
    *(
        "getegid",
        "geteuid",
        "getgid",
        "getxattr",
        "getpid",
        "getppid",
        "getrandom",
        "gettid",
        "getuid",
        "ioctl",
        "lseek",
        "lstat",
    ),
    *(
        "madvise",
        "mmap",
        "mprotect",
        "mremap",
        "munmap",
        "newfstatat",
        "pipe2",
        "pread64",
        "prlimit64",
        "readlink",
    ),
    *(
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "sched_yield",
        "set_robust_list",
        "sigaltstack",
        "stat",
    ),
    *("statfs", "statx", "sysinfo", "umask", "uname"),
}
"""Calls that leave no trace outside the process: killed at one it leaves what it leaves at the next other one."""


class Kills:
    """Of one lever: the calls that its agent makes, and what is there after a kill at each of them."""

    def __init__(self, kind: type[Case], root: Path) -> None:
        self.case = kind(root, in_process=False)
        self.before = self.case.now()
        self.log = root / "strace"

    def calls(self) -> list[tuple[str, int]]:
        """(system call, which one of its kind), in their order; those that do something."""
        assert self._run("") == 0, "the agent ends by itself"
        assert self.case.now() == self.case.undone(self.before), "it takes all back"
        counts: Counter[str] = Counter()
        made = []
        for line in self.log.read_text().splitlines():
            if match := re.match(r"(\w+)\(", line):
                counts[match[1]] += 1
                made.append((match[1], counts[match[1]]))
        return [call for call in made if call[0] not in NOTHING]

    def after_kill(self, call: tuple[str, int]) -> dict[str, tuple[str | None, str | None]]:
        """Thing → (found, expected), of those that are not as they should be."""
        self._run(f"{call[0]}:signal=SIGKILL:when={call[1]}")
        agent = self.case.agent()
        done = agent.engine.take_back("undo", wait_s=WAIT_S)
        found, expected = self.case.now(), self.case.undone(self.before)
        wrong = {
            name: (found.get(name), expected.get(name))
            for name in {*found, *expected}
            if found.get(name) != expected.get(name)
        }
        wrong |= {" ".join(failure.key): (failure.why, "") for failure in done.failed}
        if agent.store.held_changes:
            wrong["notes"] = (str(agent.store.held_changes), None)
        return wrong

    def _run(self, inject: str) -> int:
        """The agent, under strace from before its first call on; its status as `os.waitpid` gives it."""
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)
            self._agent()
        os.close(ready)
        more = ["-e", f"inject={inject}"] if inject else []
        strace = subprocess.Popen(
            ["strace", "-o", str(self.log), *more, "-p", str(child)], stderr=subprocess.PIPE
        )
        assert strace.stderr is not None
        attached = strace.stderr.readline()
        assert b"attached" in attached, attached
        os.write(go, b"x")
        os.close(go)
        _, status = os.waitpid(child, 0)
        strace.stderr.close()
        strace.wait()
        return status

    def _agent(self) -> None:
        status = 1
        try:
            agent = self.case.agent()
            for wish in (1, 0):
                agent.follow(Plan(tuple(self.case.wishes()[wish])), "apply", "a test", wait_s=WAIT_S)
            agent.engine.take_back("undo", wait_s=WAIT_S)
            status = 0
        finally:
            os._exit(status)


def tried(name: str, every: int, first: int = 0) -> tuple[int, list[str]]:
    """Each `every`th call: (kills, what was wrong after one)."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "LOOK_S", 0.0)
        kills = Kills(CASES[name], Path(directory))
        for variable, value in kills.case.environment().items():
            patch.setenv(variable, value)
        chosen, wrong = kills.calls()[first::every], []
        for number, call in enumerate(chosen, 1):
            if found := kills.after_kill(call):
                wrong.append(f"{name}, killed at {call[0]} number {call[1]}: {found}")
            if sys.stderr.isatty():
                print(f"\r{name}: {number} of {len(chosen)}", end="", file=sys.stderr)
        return len(chosen), wrong


def main() -> int:
    options = argparse.ArgumentParser(description="Kill agents at every system call.")
    options.add_argument("levers", nargs="*", metavar="LEVER", help=f"of {', '.join(CASES)} (default: all)")
    options.add_argument("--every", type=int, default=1, metavar="N", help="each Nth call alone (default 1)")
    chosen = options.parse_args()
    logging.disable()
    bad = 0
    for name in chosen.levers or sorted(CASES):
        begun = time.monotonic()
        count, wrong = tried(name, chosen.every)
        print("\n".join(wrong), end="\n" if wrong else "")
        print(f"{name}: {count} kills, {len(wrong)} wrong, {time.monotonic() - begun:.0f} s", flush=True)
        bad += len(wrong)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
