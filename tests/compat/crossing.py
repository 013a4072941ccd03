"""This version and an earlier one beside one another, each part of either: jobs on a testbed, recorded and placed.

Real daemons, the real library, CURVE keys. The earlier version reads the same configuration without the settings that
it does not know: a site adds those once all is upgraded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from tarazu.sim.testbed import processes
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import daemon_commands, wait_until_ready

PARTS = ("mdsd", "ossd", "clientd", "leader", "library")
EARLIER = "earlier.toml"
JOB = "4711"
RANKS, BYTES = 6, 96 << 10
PROGRAM = """
import os, sys
folder, ranks, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(folder, exist_ok=True)
for rank in range(ranks):
    with open(f"{folder}/rank.{rank}", "wb") as file:
        file.write(bytes([rank]) * size)
"""
KNOWN = """
import dataclasses, json
from tarazu import config
settings = config.Settings()
print(json.dumps([f"{s.name}.{f.name}" for s in dataclasses.fields(settings)
                  if dataclasses.is_dataclass(getattr(settings, s.name))
                  for f in dataclasses.fields(getattr(settings, s.name))]))
"""
LIBRARY_OF = """
import sys
from pathlib import Path
from tarazu import native
library, own = Path(sys.argv.pop(1)), native.library_path
native.library_path = lambda name: library if name == "libtarazu.so" else own(name)
from tarazu.cli import main
sys.exit(main())
"""


class Crossing(NamedTuple):
    """Which parts are the earlier version's."""

    name: str
    earlier: tuple[str, ...]


CROSSINGS = (
    Crossing("mdsd is upgraded first", ("ossd", "clientd", "leader", "library")),
    Crossing("the servers are upgraded first", ("clientd", "leader", "library")),
    Crossing("the launch nodes are upgraded first", ("mdsd", "ossd")),
    Crossing("the OSSs are still to come", ("ossd",)),
    Crossing("a leader of before on an upgraded clientd", ("leader", "library")),
    Crossing("a new leader on a clientd of before", ("clientd",)),
    Crossing("compute nodes still have the library of before", ("library",)),
    Crossing("compute nodes have the new library already", ("mdsd", "ossd", "clientd", "leader")),
    Crossing("all of before", PARTS),
)


class Result(NamedTuple):
    name: str
    trouble: str
    """Empty: every file was made with its bytes, and placed in the second run."""


def run(crossing: Crossing, earlier: Path) -> Result:
    """`earlier`: the `bin` directory of the earlier version."""
    directory = Path(tempfile.mkdtemp(prefix="tarazu-crossing-"))
    bed = testbeds.up(directory / "tb", osss=2, osts_per_oss=3, interval_s=0.5, sparse=False)
    try:
        changes = {"layout": {"stripe_count": "2", "min_size": 0}, "run": {"wait_s": 20.0}}
        configure(bed, changes)
        _write_earlier(bed, earlier)
        processes.start(bed.directory, [_of(d, crossing, earlier) for d in daemon_commands(bed)])
        wait_until_ready(bed)
        return Result(crossing.name, _jobs(bed, crossing, earlier))
    except Exception as error:
        return Result(crossing.name, f"{type(error).__name__}: {error}")
    finally:
        testbeds.down(bed.directory)
        directory.rmdir()


def _of(daemon: processes.Daemon, crossing: Crossing, earlier: Path) -> processes.Daemon:
    part = daemon.name.split("-")[1]
    if part not in crossing.earlier:
        return daemon
    argv = [word.replace("tarazu.toml", EARLIER) for word in daemon.argv[1:]]
    return msgspec.structs.replace(daemon, argv=[str(earlier / Path(daemon.argv[0]).name), *argv])


def _write_earlier(bed: testbeds.Testbed, earlier: Path) -> None:
    """The configuration that the earlier version reads: what it knows, and where things were by settings of then."""
    known = set(json.loads(_said(earlier / "python", KNOWN, bed.directory)))
    config = bed.directory / "etc" / "tarazu.toml"
    var, home = bed.directory / "var", bed.directory / "home"
    former = {"mdsd.state": f"{var}/tarazu/mdsd", "run.history_dir": f"{home}/history"}
    lines, section = [], ""
    for line in config.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            if any(name.startswith(f"{section}.") for name in known):
                lines.append(line)
                for name in former.keys() & known:
                    if name.startswith(f"{section}."):
                        lines.append(f'{name.partition(".")[2]} = "{former[name]}"')
        elif not line or f"{section}.{line.split(' = ')[0]}" in known:
            lines.append(line)
    config.with_name(EARLIER).write_text("\n".join(lines) + "\n")


def _said(python: Path | str, program: str, directory: Path) -> str:
    """What a program prints. Not in this directory: `tarazu` there is the checkout's."""
    command = [python, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory).stdout


def _jobs(bed: testbeds.Testbed, crossing: Crossing, earlier: Path) -> str:
    python = str(earlier / "python") if "leader" in crossing.earlier else sys.executable
    own = sys.executable if "library" not in crossing.earlier else str(earlier / "python")
    where = "from tarazu import native; print(native.library_path('libtarazu.so'))"
    library = _said(own, where, bed.directory).strip()
    config = EARLIER if "leader" in crossing.earlier else "tarazu.toml"
    environment = {"TARAZU_CONFIG": str(bed.directory / "etc" / config), "TARAZU_JOB": JOB}
    folder = bed.client_mount() / "out"
    for number in range(2):
        words = ["run", "--app", "crossing", "--mode", "place", "--"]
        job = [sys.executable, "-c", PROGRAM, str(folder), str(RANKS), str(BYTES)]
        done = bed.exec(
            0,
            [python, "-c", LIBRARY_OF, library, *words, *job],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=bed.directory,
            env=environment,
        )
        if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
            return f"run {number}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
        for rank in range(RANKS):
            if (folder / f"rank.{rank}").read_bytes() != bytes([rank]) * BYTES:
                return f"run {number}: rank.{rank} holds other bytes"
        if number == 1:
            # Two stripes are the placed files'; the testbed's own default is one.
            counts = {len(o) for r in range(RANKS) for o in bed.layout(folder / f"rank.{r}").osts}
            if counts != {2}:
                log = bed.directory / "home" / "tarazu.log"
                return f"not placed: stripe counts {sorted(counts)}; {_end(log)}"
        bed.refresh()
        bed.clear()
        bed.refresh()
    return "" if "leader" in crossing.earlier else _shown(bed)


def _shown(bed: testbeds.Testbed) -> str:
    """This version's commands, whatever clientd and mdsd are."""
    for words, holds in (
        (("top", "--json"), lambda of: len(of["targets"]) == 6),
        (("job", "show", JOB, "--json"), lambda of: len(of["ended"]) == 2),
        (("status", "--json"), lambda of: of["mdsd"]["osses"]),
    ):
        done = bed.exec(
            0,
            [sys.executable, "-m", "tarazu", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=bed.directory,
            env={"TARAZU_CONFIG": str(bed.directory / "etc" / "tarazu.toml")},
        )
        if done.returncode or done.stderr or not holds(json.loads(done.stdout)):
            return f"tarazu {' '.join(words)}: status {done.returncode}, {done.stdout[-600:]}, {done.stderr}"
    return ""


def _end(path: Path) -> str:
    return path.read_text()[-600:] if path.exists() else "no log"
