"""A machine that boots: systemd-nspawn with a systemd of its own, and a network with nothing but loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

BOOT_S = 90.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(SystemExit):
    pass


class NoMachine(Failed):
    """Debian's own tree, before anything of tarazu is in it, does not boot: this host does not allow machines."""


class Machine:
    def __init__(self, root: Path, init: int) -> None:
        self.root = root
        self._init = init

    def run(self, command: str, *, user: str = "root", fails: bool = False, timeout_s: float = 120.0) -> str:
        """What a shell command prints there. Raises Failed where it ends with another status than expected."""
        shell = ["/usr/sbin/runuser", "-u", user, "--"] if user != "root" else []
        home = "/root" if user == "root" else f"/home/{user}"
        enter = ["nsenter", "-t", str(self._init), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w"]
        words = [
            *enter,
            *shell,
            "/usr/bin/env",
            "-i",
            f"PATH={PATH}",
            f"HOME={home}",
            f"USER={user}",
            "LC_ALL=C.UTF-8",
        ]
        done = subprocess.run(
            [*words, "/bin/sh", "-ec", f"cd; {command}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )
        if (done.returncode != 0) != fails:
            expected = "a failure" if fails else "status 0"
            raise Failed(
                f"day-one: {command}: expected {expected}, found {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout + done.stderr if fails else done.stdout


@contextlib.contextmanager
def booted(root: Path) -> Iterator[Machine]:
    """The machine of the tree `root`, until the end. Raises NoMachine where it does not boot."""
    for unit in (
        "getty.target",
        "console-getty.service",
        "systemd-logind.service",
        "systemd-firstboot.service",
    ):
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    (root / "etc/machine-id").write_text("")
    name = f"tarazu-day-one-{os.getpid()}"
    command = [
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--private-network",
        "--console=pipe",
    ]
    command += ["-D", str(root), "-M", name, "--boot", "systemd.unit=multi-user.target"]
    environ = {**os.environ, "SYSTEMD_NSPAWN_LOCK": "0"}
    log = root.parent / "boot.log"
    with log.open("w") as out:
        nspawn = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environ
        )
    try:
        machine = _when_up(root, nspawn, log)
        yield machine
    finally:
        nspawn.terminate()
        try:
            nspawn.wait(20)
        except subprocess.TimeoutExpired:
            nspawn.send_signal(signal.SIGKILL)
            nspawn.wait()


def _when_up(root: Path, nspawn: subprocess.Popen[bytes], log: Path) -> Machine:
    deadline = time.monotonic() + BOOT_S
    state = ""
    while time.monotonic() < deadline:
        if nspawn.poll() is not None:
            break
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
        # The first process of the machine is the one that is systemd itself.
        for child in children:
            machine = Machine(root, int(child))
            with contextlib.suppress(Failed, subprocess.TimeoutExpired):
                state = machine.run("systemctl is-system-running || :", timeout_s=10).strip()
                if state in ("running", "degraded"):
                    return machine
        time.sleep(0.2)
    raise NoMachine(f"day-one: the machine did not boot ({state or 'no answer'}):\n{log.read_text()[-2000:]}")
