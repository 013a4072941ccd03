"""What is there when the pages' commands are typed: an emulated Lustre with the daemons, and what the examples name.

Everything lies in the overlay's root (`overlay`). Names that stand for a reader's own (LOG.darshan, APP, DIR, …) exist
under just these names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tarazu.sim.testbed.processes import free_port
from tests.docs.reading import ROOT

SITE = Path("/tmp/tarazu-docs/site")
HOME = Path("/tmp/tarazu-docs/home")
PROGRAMS = Path("/tmp/tarazu-docs/programs")
"""First on the PATH: stand-ins, and what looks at each command before it is run."""
SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
APPLICATIONS = ("APP", "ior", "climate", "solver")
WORK = Path("/tmp/tarazu-docs/work")
"""Where the commands of the prose are typed."""
MOUNTS = ("/scratch", "/lustre")
STANDS_FOR = {
    "explain PATH": "explain /scratch/me/out/ior.0",
    "--advise DIR": "--advise /scratch/me",
    "explain FILE": "explain /scratch/me/out/ior.0",
}
BAD_OST = ROOT / "tarazu" / "trace" / "darshan" / "example.darshan"
"""2,048 processes on a production Lustre."""
YESTERDAY = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
NODES = tuple(f"n{number}" for number in range(1, 9))
FILES = {
    "machine.txt": "n[1-4] cabinet=c1 io_node=io1\nn[5-8] cabinet=c2 io_node=io2\n",
    "new.toml": "[run]\nmode = 'advise'\n",
    "job.sh": "#!/bin/sh\n#SBATCH -N 64\ntrue\n",
    "model.py": "open('/scratch/me/out/model', 'w').write('x' * 1000)\n",
}


def _bin(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def call(*words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> dict[str, str]:
    """Make it; the environment of a shell there."""
    HOME.mkdir(parents=True)
    PROGRAMS.mkdir()
    shutil.copy("/bin/true", PROGRAMS / "PROGRAM")
    for each in sorted((Path(__file__).parent / "stand_ins").iterdir()):
        shutil.copy(each, PROGRAMS / each.name)
        (PROGRAMS / each.name).chmod(0o755)
    env = {
        "HOME": str(HOME),
        "PATH": ":".join((str(PROGRAMS), str(Path(sys.executable).parent), *SYSTEM)),
        "LANG": "C.UTF-8",
        "USER": "root",
    }
    call(
        _bin("tarazu"),
        "sim",
        "testbed",
        "up",
        str(SITE),
        "--osss",
        "3",
        "--osts-per-oss",
        "4",
        "--clients",
        "2",
        env=env,
    )
    for application in APPLICATIONS:
        _learned(application, env)
    for here in (ROOT, WORK):
        _files(here)
    _installed(env)
    _more_daemons(env)
    _stand_for_the_readers(env)
    return env


def client(env: dict[str, str]) -> dict[str, str]:
    """The environment of a client of the emulated Lustre, with this scene's programs and state before its own."""
    there = json.loads(call(_bin("tarazu"), "sim", "testbed", "env", str(SITE), "--json", env=env))
    there["PATH"] = f"{PROGRAMS}:{there['PATH']}"
    return env | there | {"TARAZU_STATE_DIRECTORY": "/var/lib"}


def _files(here: Path) -> None:
    """Where commands are typed, and where the examples say that things lie."""
    here.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (here / name).write_text(text)
    logs = (here / "LOG.darshan", Path("/darshan/2026/11/1.darshan"), HOME / "darshan" / "1.darshan")
    for log in logs:
        log.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BAD_OST, log)
    (here / "DIR").mkdir()
    for name in ("app", "ior", "hacc_io", "solver", "script.sh"):
        shutil.copy("/bin/true", here / name)
    results = here / "results"
    results.mkdir()
    shutil.copy(ROOT / "tests/data/ior/4.0.0-posix-unique.json", results / "1.json")


def _installed(env: dict[str, str]) -> None:
    """What packages and former days have left: units, a database, a ledger, a key for one launch node."""
    units = Path("/usr/lib/systemd/system")
    units.mkdir(parents=True, exist_ok=True)
    for unit in (ROOT / "tarazu").glob("*/*/tarazu*.service"):
        shutil.copy(unit, units)
    state = Path("/var/lib/tarazu")
    state.mkdir(exist_ok=True)
    shutil.copytree(SITE / "var" / "tarazu" / "mdsd", state / "mdsd")
    (state / "interaction.db").touch()
    call(
        _bin("tarazu"),
        "config",
        "keys",
        "create",
        "client",
        "--name",
        "login1",
        "--uids",
        "1000",
        env=client(env),
    )


def _more_daemons(env: dict[str, str]) -> None:
    """Those that a testbed does not start: a council, an announcer of the client, tarazu-burstd."""
    council, bursts = free_port(), free_port()
    more = SITE / "etc" / "conf.d" / "docs.toml"
    more.write_text(
        "[state]\ndirectory = '/var/lib'\n"
        f"[part.council]\naddress = 'tcp://127.0.0.1:{council}'\ngroup = 'docs'\nlevers = ['max_rpcs_in_flight']\n"
        "[ossd]\nexports = true\n"
        f"[part.bursts]\nstatistics = 'tcp://127.0.0.1:{bursts}'\nmachine = '{WORK}/machine.txt'\n"
        f"[part.forwarding]\nbenchmarks = '{WORK}/benchmarks.csv'\n"
    )
    there = client(env)
    for directory in ("/run/tarazu-burstd", "/var/lib/tarazu-council", "/var/lib/tarazu-announcer"):
        Path(directory).mkdir(exist_ok=True)
    _traffic(Path("/var/lib/tarazu-burstd/traffic"))
    for daemon in (("tarazu-council",), ("tarazu-announcer", "--kind", "client"), ("tarazu-burstd",)):
        with (SITE / "log" / daemon[0]).open("w") as log:
            subprocess.Popen(
                [_bin(daemon[0]), *daemon[1:]], env=there, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )


def _traffic(directory: Path) -> None:
    """What nodes moved some days ago."""
    import numpy as np

    from tarazu.parts.bursts.traffic import days
    from tarazu.parts.bursts.traffic.traffic import Traffic

    rows = [(s, node) for s in range(0, 600, 60) for node in range(len(NODES))]
    time_s, node = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    moved = np.full(len(rows), 6000, np.int64)
    time_s += int(YESTERDAY.timestamp()) - 5 * 86400
    days.append(directory, Traffic(NODES, 60.0, time_s, node.astype(np.int32), 0 * moved, moved))


def _stand_for_the_readers(env: dict[str, str]) -> None:
    """Values of the words that stand for something that has a number: a run that is remembered, one that goes on."""
    there = client(env)
    words = [_bin("tarazu"), "run", "--app", "goes-on", "--mode", "observe", "--", "sleep", "600"]
    subprocess.Popen(
        words, env=there, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    maps = SITE / "home" / "maps"
    while not (steps := list(maps.glob("*"))):
        time.sleep(0.1)
    STANDS_FOR["--job RUN"] = f"--job {steps[0].name}"
    (run,) = json.loads(call(_bin("tarazu"), "history", "list", "APP", "--json", env=there))[:1]
    STANDS_FOR["RUN"] = run["run_id"]


def _learned(application: str, env: dict[str, str]) -> None:
    """Three runs that wrote a file, and a fourth that is placed."""
    there = client(env)
    mount = Path(there["TESTBED_MOUNT"])
    for name in MOUNTS:
        if not os.path.lexists(name):
            os.symlink(mount, name)
    for name in ("bench", "project", "sets", "results", "out"):
        (mount / name).mkdir(exist_ok=True)
    words = f"mkdir -p {mount}/me/out; dd if=/dev/zero of={mount}/me/out/{application}.0 bs=1M count=200 status=none"
    for mode in ("observe", "observe", "observe", "place"):
        call(_bin("tarazu"), "run", "--app", application, "--mode", mode, "--", "sh", "-c", words, env=there)
