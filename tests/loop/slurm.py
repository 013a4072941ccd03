"""A private Slurm on this machine: munged, slurmctld and one slurmd a node, all below one directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch")
_SBIN = "/usr/sbin:/sbin"
_START_S = 300.0

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/{scheduler}
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait={kill_wait_s}
SlurmdParameters=config_overrides
LaunchParameters={launch}
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=8 RealMemory=64
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"""


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    absent = [name for name in NEEDED if _which(name) is None]
    if absent:
        return f"needs Slurm and munge (Debian: slurm-wlm munge), not found: {' '.join(absent)}"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def missing_lua() -> str:
    """Why no plugin in Lua can ask anybody; empty when it can."""
    paths = [
        *Path("/usr/lib").glob("*/slurm-wlm/job_submit_lua.so"),
        *Path("/usr/lib").glob("*/lua/5.1/socket/unix.so"),
    ]
    return "" if len(paths) == 2 else "needs Slurm's job_submit/lua and LuaSocket (Debian: lua-socket)"


def _which(name: str) -> str | None:
    """Debian's emulator, where it is installed too, takes the daemons' plain names."""
    path = f"{os.environ.get('PATH', '')}:{_SBIN}"
    return shutil.which(f"{name}-wlm", path=path) or shutil.which(name, path=path)


def _free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody listens on, nor another worker's Slurm is about to."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 6
    lowest = 20_000 + 2000 * worker
    for first in range(lowest + os.getpid() % 1000, lowest + 2000 - count, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError("no free ports")


class Slurm:
    """Nodes `n1`, `n2`, … of 8 CPUs each. `env` is what its commands need in their environment."""

    def __init__(
        self,
        directory: Path,
        nodes: int = 2,
        *,
        interactive_step: bool = True,
        hosts: Sequence[Sequence[str]] = (),
        leaves: int = 0,
        backfill: bool = False,
        kill_wait_s: int = 2,
        more: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        """`hosts`: what goes before the daemon of each node, to start it elsewhere. `leaves`: switches, leaf0, leaf1…,
        each with as many nodes (topology/tree); 0: none. `more`: lines of slurm.conf; `files`: beside it.

        Raises OSError when it does not come up.
        """
        self.directory = directory
        # Slurm starts $SHELL in an interactive step; not everybody's environment has one.
        self.env = {"SLURM_CONF": str(directory / "slurm.conf"), "SHELL": "/bin/bash"}
        self._hosts = hosts or [()] * nodes
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("munge", "state"):
            (directory / name).mkdir(parents=True)
        host = socket.gethostname().partition(".")[0]
        for name, text in (files or {}).items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        if leaves:
            more += "TopologyPlugin=topology/tree\n"
            (directory / "topology.conf").write_text(_topology(nodes, leaves))
        first = _free_ports(nodes + 1)
        (directory / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=host,
                directory=directory,
                ports=(first, first + 1, first + nodes),
                nodes=nodes,
                scheduler="backfill" if backfill else "builtin",
                more=more,
                kill_wait_s=kill_wait_s,
                launch="use_interactive_step" if interactive_step else "slurmstepd_memlock",
            )
        )
        try:
            self._start(nodes)
        except BaseException:
            self.down()
            raise

    def _start(self, nodes: int) -> None:
        munge = self.directory / "munge"
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o600)
        files = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        self._spawn("munged", "--foreground", "--force", *(f"--{o}={munge / f}" for o, f in files.items()))
        self._wait((munge / "socket").exists, "munged")
        self._spawn("slurmctld", "-D", "-c")
        stepd = _which("slurmstepd")
        step = ("-d", stepd) if stepd else ()
        for n in range(1, nodes + 1):
            self._spawn("slurmd", "-D", "-N", f"n{n}", *step, before=self._hosts[n - 1])
        self._wait(lambda: self.idle() == nodes, "slurmd")

    def _spawn(self, name: str, *options: str, before: Sequence[str] = ()) -> None:
        program = _which(name)
        assert program is not None
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environ = {**os.environ, **self.env}
        self._processes.append(
            subprocess.Popen(
                [*before, program, *options], env=environ, cwd=self.directory, start_new_session=True, **quiet
            )  # type: ignore[call-overload]
        )

    def idle(self) -> int:
        asked = subprocess.run(
            ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            check=False,
            timeout=_START_S,
        )
        return len(set(asked.stdout.split()))  # of several partitions each lists a node

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + _START_S
        while not ready():
            if time.monotonic() > until or any(process.poll() for process in self._processes):
                raise OSError(f"{what} did not come up: {self.log()}")
            time.sleep(0.1)

    def log(self) -> str:
        """The last lines of each daemon."""
        logs = [*self.directory.glob("*.log"), *self.directory.glob("munge/log")]
        return "\n".join(f"{p.name}: {p.read_text(errors='replace')[-1000:]}" for p in logs)

    def down(self) -> None:
        """End all jobs, steps and daemons."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["scancel", "--signal=KILL", "--user=root"],
                env={**os.environ, **self.env},
                capture_output=True,
                check=False,
                timeout=300,
            )
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _topology(nodes: int, leaves: int) -> str:
    each = nodes // leaves
    lines = [f"SwitchName=leaf{i} Nodes=n[{i * each + 1}-{(i + 1) * each}]" for i in range(leaves)]
    return "\n".join([*lines, f"SwitchName=root Switches=leaf[0-{leaves - 1}]"]) + "\n"


def up(directory: Path, **options: object) -> Iterator[Slurm]:
    """For a fixture: the cluster, ended afterwards."""
    slurm = Slurm(directory, **options)  # type: ignore[arg-type]
    try:
        yield slurm
    finally:
        slurm.down()
