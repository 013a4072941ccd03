"""Spools of a job whose memory is limited: they count as its own, and must never be what it is killed for."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LONG_S, until

Runs = Any
CGROUPS = Path("/sys/fs/cgroup")
LIMIT = 48 << 20


def new_group() -> Path:
    """A memory group of version 1 or 2 with a group of its own below it, where a limit stands above the process."""
    if os.geteuid() != 0:
        pytest.skip("only root can make control groups")
    mount = next((p for p in (CGROUPS / "memory", CGROUPS) if (p / "cgroup.procs").exists()), None)
    if mount is None:
        pytest.skip("no control groups here")
    job = mount / f"tarazu-test-{os.getpid()}"
    try:
        job.mkdir()
        limit = next((f for f in ("memory.limit_in_bytes", "memory.max") if (job / f).exists()), None)
        if limit is None:
            pytest.skip("no control groups of memory can be made here")
        (job / limit).write_text(str(LIMIT))
        (job / "step").mkdir()
    except OSError as error:
        remove(job)
        pytest.skip(f"no control groups can be made here: {error}")
    return job


def remove(job: Path) -> None:
    for group in (job / "step", job):
        if group.exists():
            until(lambda group=group: removed(group), lambda group=group: f"{group} is in use")


def removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True


@pytest.fixture
def job() -> Iterator[Path]:
    made = new_group()
    yield made
    remove(made)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A place for spools in memory, as a site has it."""
    made = Path(tempfile.mkdtemp(prefix="tarazu-test-", dir="/dev/shm"))
    yield made
    shutil.rmtree(made)


def run_in(
    job: Path, plain: Runs, environ: dict[str, str], *argv: object
) -> subprocess.CompletedProcess[str]:
    preload = environ.pop("LD_PRELOAD")
    script = f'echo $$ > {job}/step/cgroup.procs && LD_PRELOAD="$0" exec "$@"'
    return subprocess.run(
        ["sh", "-c", script, preload, *map(str, argv)],
        env=environ, cwd=plain.mount, capture_output=True, text=True, timeout=LONG_S, check=False,
    )  # fmt: skip


def held(spools: Path) -> int:
    return sum(p.stat().st_blocks * 512 for p in spools.glob("*"))


def test_a_small_job_that_makes_many_files_is_not_killed(
    plain: Runs, compiled: Any, job: Path, memory: Path
) -> None:
    spools = memory / "spools"
    environ = plain.environ(TARAZU_SPOOL=str(spools))
    done = run_in(job, plain, environ, compiled("room.c"), 40000, 38)
    assert (done.returncode, done.stderr) == (0, "")
    assert 4096 < held(spools) <= LIMIT // 100
    shutil.copytree(spools, plain.spool_directory)
    records = len(plain.creates) + len(plain.closes)
    assert records > 0 and records + sum(s.dropped for s in plain.all_spools) == 80000


def limit_in(spools: Path) -> int:
    """What the node's file says that spools may take."""
    (node,) = spools.glob("*.node.tzs")
    return int.from_bytes(node.read_bytes()[48:56], "little")


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid() != 0, reason="needs root and unshare")
@pytest.mark.parametrize("root", ["/", "/job"])
@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_is_that_of_the_tightest_group_above(
    plain: Runs, compiled: Any, version: int, root: str
) -> None:
    """With a /proc and groups made up for either version; in a container the mount shows the groups from `root` on."""
    proc, groups = plain.work / "proc", plain.work / "groups"
    (proc / "self").mkdir(parents=True)
    step = groups / "job" / "step"
    step.mkdir(parents=True)
    names = ("memory.max", "memory.current", "") if version == 2 else (
        "memory.limit_in_bytes", "memory.usage_in_bytes", "total_",
    )  # fmt: skip
    none = "max" if version == 2 else "9223372036854771712"
    for group, limit in ((step, none), (step.parent, str(LIMIT)), (groups, none)):
        (group / names[0]).write_text(f"{limit}\n")
        (group / names[1]).write_text(f"{LIMIT - (8 << 20)}\n")
        (group / "memory.stat").write_text(f"cache 9\n{names[2]}inactive_file {2 << 20}\n")
    line = "0::/job/step" if version == 2 else "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job/step\n0::/"
    (proc / "self" / "cgroup").write_text(f"{line}\n")
    kind = "cgroup2 cgroup2 rw" if version == 2 else "cgroup cgroup rw,hugetlb,memory"
    mount = groups / root.strip("/")
    (proc / "self" / "mountinfo").write_text(
        f"31 23 0:28 / /sys rw - tmpfs tmpfs rw\n32 31 0:29 / /x rw - cgroup cgroup rw,cpu\n"
        f"33 31 0:30 {root} {mount} rw,relatime shared:9 - {kind}\n"
    )
    environ = plain.environ()
    preload = environ.pop("LD_PRELOAD")
    script = f'mount --bind {proc} /proc && LD_PRELOAD="$0" exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", script, preload, str(compiled("room.c")), "4000"]
    done = plain.run(argv, environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert limit_in(plain.spool_directory) == LIMIT // 100
    (spool,) = plain.spools
    # From 128 to 256 KiB it would take more than 1 % of the 10 MiB that are left.
    assert spool.capacity <= 1 << 17 and spool.dropped > 0
