"""HACC-IO and IOR side by side on the testbed, with the real daemons: what `hacc_ior` holds the simulator against.

python -m tarazu.sim.validation.hacc_ior_testbed     runs it all again and writes hacc_ior_testbed.json (minutes)

As in the paper (sections 6.4 and 7.2.4): 8 ranks of HACC-IO with 50 million particles each under PFL configuration 2
on one client, 8 ranks of IOR with 64 GiB under PFL configuration 1 on the other. `lsa`: the testbed's own allocator
(in C) places them by the directories' default layouts. `tarazu`: ossd, mdsd and both clientd run, three runs are
recorded, the fourth is forecast and placed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tarazu.errors import TarazuError
from tarazu.sim.demo import tarazu_command
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.library import library_directory
from tarazu.sim.validation.progress import Progress
from tarazu.sim.workloads.hacc import hacc_bytes
from tarazu.units import GIB, MIB

STORED = Path(__file__).with_suffix(".json")
RANKS = 8
PARTICLES = 50_000_000
BYTES = {"ior": 8 * GIB, "hacc": hacc_bytes(PARTICLES)}
"""Application → bytes of each rank's file."""
LAYOUTS = {
    "ior": "0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16",
    "hacc": "0-128M:1, 128M-2G:12, 2G-EOF:32",
}
TRANSFER_BYTES = 4 * MIB
RECORDED = 3
RUNS = {"lsa": 40, "tarazu": 5}
"""How often the stored result repeats it: Lustre's allocator starts anywhere, tarazu's placement hardly varies."""


class TestbedRun(msgspec.Struct, frozen=True):
    """Bytes that lie on each OST afterwards, read back from the files' layouts."""

    policy: str
    seed: int
    ost_bytes: tuple[int, ...]


def stored() -> tuple[TestbedRun, ...]:
    """The result of the command above."""
    return msgspec.json.decode(STORED.read_bytes(), type=tuple[TestbedRun, ...])


def measure(policy: str, seed: int, directory: Path) -> TestbedRun:
    """One run on a testbed in `directory`, which is removed afterwards. Raises TarazuError."""
    testbed = testbeds.up(directory, clients=len(BYTES), seed=seed)
    try:
        if policy == "lsa":
            for name, text in LAYOUTS.items():
                (testbed.mount / name).mkdir()
                testbed.set_default_layout(text, testbed.mount / name)
            _both(testbed, 1, "off")
        else:
            _recorded_and_placed(testbed)
        return TestbedRun(policy, seed, tuple(testbed.usage().ost_bytes))
    finally:
        testbeds.down(directory)


def _recorded_and_placed(testbed: testbeds.Testbed) -> None:
    rules = testbed.directory / "etc" / "pfl.ini"
    rules.write_text("".join(f"[{n}]\nmatch = /{n}/*\ncomponents = {text}\n" for n, text in LAYOUTS.items()))
    configure(testbed, {"layout": {"striping": "raid0", "pfl_file": str(rules)}})
    testbed.start_daemons()
    wait_until_ready(testbed)
    for number in range(RECORDED):
        _both(testbed, number, "observe")
        testbed.refresh()
        testbed.clear()
        testbed.refresh()
    time.sleep(3 * testbed.interval_s)  # until every OSS has said that it is empty again
    _both(testbed, RECORDED, "place")


def _both(testbed: testbeds.Testbed, number: int, mode: str) -> None:
    """Both applications at once, each on its client."""
    jobs = [_start(testbed, client, name, number, mode) for client, name in enumerate(BYTES)]
    for name, job in zip(BYTES, jobs, strict=True):
        _, problem = job.communicate()
        if job.returncode:
            raise TarazuError(f"{name}: expected status 0, found {job.returncode}: {problem}")


def _start(
    testbed: testbeds.Testbed, client: int, name: str, number: int, mode: str
) -> subprocess.Popen[str]:
    words = [
        *(library_directory() / "testbed" / "iorlike", "-F", "-n", RANKS, "-r", number),
        *("-b", BYTES[name], "-t", TRANSFER_BYTES),
        *("-o", testbed.client_mount(client) / name / "run{run:03}" / "data.rank{rank:05}"),
    ]
    script = testbed.directory / f"{name}.sh"
    script.write_text("exec " + shlex.join(str(w) for w in words) + "\n")
    command = ["sh", str(script)]
    if mode != "off":
        command = tarazu_command("run", "--app", name, "--mode", mode, "--", *command)
    environment = os.environ | testbed.environment(client)
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def measure_all(progress: Progress, runs: dict[str, int] | None = None) -> tuple[TestbedRun, ...]:
    """Every run of `runs` (policy → how many), in a directory for itself."""
    testbed_runs = []
    with tempfile.TemporaryDirectory(prefix="tarazu-") as directory:
        for policy, count in (runs or RUNS).items():
            for seed in range(count):
                progress(f"testbed: HACC-IO and IOR under {policy}, {seed + 1} of {count}")
                testbed_runs.append(measure(policy, seed, Path(directory) / "testbed"))
    return tuple(testbed_runs)


def main() -> None:
    runs = measure_all(lambda text: print(text, file=sys.stderr, flush=True))
    STORED.write_text("[\n" + ",\n".join(msgspec.json.encode(run).decode() for run in runs) + "\n]\n")
    print(f"{STORED}: written")


if __name__ == "__main__":
    main()
