"""What becomes of jobs of a real Slurm: on four nodes, of several steps, put back into the queue, out of time."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loop import slurm as private_slurm
from tests.loop.conftest import Loop, make_loop
from tests.loop.test_slurm import Cluster, led

pytestmark = pytest.mark.skipif(
    bool(private_slurm.missing()), reason=private_slurm.missing() or "Slurm is there"
)
CLIENTS = 1
WAIT_S = 300.0
WRITER = r"""
import os, sys, time
folder, hold = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/out.{os.environ['SLURM_PROCID']}", "wb") as file:
    file.truncate(1 << 20)
    file.write(b"x")
if hold != "no" and os.environ.get("SLURM_RESTART_COUNT", "0") == "0":
    time.sleep(120)
"""
SPY = """#!/bin/sh
# Says of its own process, and of one that it starts, whether anything of tarazu's is there.
for found in $(env | grep -E '^(LD_PRELOAD=.*libtarazu|TARAZU_(STEP|MAP|SPOOL)=)' | cut -d= -f1) \
             $(sh -c 'grep -o libtarazu /proc/self/maps /proc/self/environ' | sort -u); do
    echo "$1 $0 $found" >> {directory}/found
done
echo "$0" >> {directory}/ran
"""
PROLOGS = (
    "task-prolog",
    "task-epilog",
    "node-prolog",
    "node-epilog",
    "srun-prolog",
    "srun-epilog",
    "user-prolog",
)
URGENT = """\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[private_slurm.Slurm]:
    directory = tmp_path_factory.mktemp("slurm") / "slurm"
    scripts = {
        "TaskProlog": "task-prolog",
        "TaskEpilog": "task-epilog",
        "Prolog": "node-prolog",
        "Epilog": "node-epilog",
        "SrunProlog": "srun-prolog",
        "SrunEpilog": "srun-epilog",
    }
    lines = "".join(f"{name}={directory}/{path}\n" for name, path in scripts.items())
    spies = {name: SPY.replace("{directory}", str(directory)) for name in PROLOGS}
    yield from private_slurm.up(directory, nodes=4, more=URGENT + lines, files=spies, kill_wait_s=15)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    changes: dict[str, dict[str, Any]] = {
        "layout": {"stripe_count": "paper", "striping": "raid0", "min_size": 0},
        "run": {"alive_s": 1.0},
    }
    yield from make_loop(tmp_path_factory.mktemp("loop") / "tb", changes, osss=1, osts_per_oss=35)


@pytest.fixture
def cluster(loop: Loop, slurm: private_slurm.Slurm) -> Iterator[Cluster]:
    cluster = Cluster(loop, slurm)
    yield cluster
    cluster("scancel", "--user=root")


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    program = tmp_path / "writer"
    program.write_text(f"#!{sys.executable}\n{WRITER}")
    program.chmod(0o755)
    return program


def until(true: Callable[[], object], cluster: Cluster, what: str, wait_s: float = WAIT_S) -> None:
    ends_at = time.monotonic() + wait_s
    while not true():
        assert time.monotonic() < ends_at, (what, cluster("squeue"), cluster.slurm.log(), cluster.loop.log())
        time.sleep(0.1)


def submit(cluster: Cluster, script: str, *options: str) -> str:
    words = ("sbatch", "--parsable", "-o", f"{cluster.slurm.directory}/job.out", *options, "--wrap", script)
    return cluster(*words).strip()


def runs(cluster: Cluster, app: str) -> list[dict[str, Any]]:
    """Remembered, oldest first."""
    found: list[dict[str, Any]] = cluster.loop.json("history", "list", app)
    return found


def remembered(cluster: Cluster, app: str) -> int:
    """How many runs are."""
    return len(list(cluster.loop.home.glob(f"**/{app}/*.run")))


def job(cluster: Cluster, script: str, *options: str) -> None:
    """Run one to its end."""
    submit(cluster, script, "--wait", *options)


def promised(cluster: Cluster) -> int:
    status = cluster.loop.json("status")
    return int(status["mdsd"]["requests"]["promises"])


def left_behind(cluster: Cluster) -> list[str]:
    """Directories of steps, on this machine, that name a process that is no more."""
    places = [cluster.loop.home / "maps", *Path("/dev/shm").glob(f"tarazu-{os.getuid()}*")]
    names = {path.name for place in places for path in place.glob("*-*-*-*")}
    return sorted(name for name in names if not Path(f"/proc/{name.split('-')[1]}").exists())


def test_steps_on_four_nodes_one_after_the_other_and_at_once(cluster: Cluster, writer: Path) -> None:
    out = cluster.loop.mount() / "steps"

    def step(app: str, folder: str, size: str) -> str:
        return f"{shlex.join(led(app))} srun {size} {writer} {out}/{folder} no"

    after = "; ".join(step("after", str(n), "-n8") for n in (1, 2))
    at_once = " & ".join(step(app, app, "--exact -N2 -n2") for app in ("one", "two"))
    job(cluster, f"{after}; {at_once} & wait", "-N4", "-n8")
    first, second = runs(cluster, "after")
    assert (first["outcomes"], second["outcomes"]) == ({"unmanaged": 8}, {"hit": 8}), cluster.loop.log()
    assert (first["ranks"], second["ranks"]) == (8, 8)
    assert [run["outcomes"] for app in ("one", "two") for run in runs(cluster, app)] == [{"unmanaged": 2}] * 2
    assert left_behind(cluster) == []


def test_nothing_of_ours_is_in_prologs_and_shells(cluster: Cluster, writer: Path) -> None:
    """Nor in a job that the program submits, whose own step is led as any other."""
    directory, out = cluster.slurm.directory, cluster.loop.mount() / "spied"
    (directory / "found").unlink(missing_ok=True)
    (directory / "ran").unlink(missing_ok=True)
    inner = f"{directory}/srun-epilog inner; {shlex.join(led('inner'))} srun -n1 {writer} {out}/inner no"
    (directory / "program").write_text(
        f"#!/bin/sh\n{writer} {out} no\n[ $SLURM_PROCID = 0 ] || exit 0\n"
        f"env -u SLURM_JOB_ID sbatch -Q -p urgent -n1 -N1 -o /dev/null --wrap {shlex.quote(inner)}\n"
    )
    (directory / "program").chmod(0o755)
    step = f"srun -n4 --task-prolog={directory}/user-prolog {directory}/program"
    shell = f"{directory}/srun-prolog shell; bash -lc '{directory}/srun-prolog login'"
    job(cluster, f"{shell}; {shlex.join(led('spied'))} {step}; {shell}", "-N4", "-n4")
    until(lambda: remembered(cluster, "inner"), cluster, "the inner job")
    found = directory / "found"
    assert not found.exists(), found.read_text()
    assert {Path(line).name for line in (directory / "ran").read_text().split()} == set(PROLOGS)
    assert runs(cluster, "spied")[0]["outcomes"] == {"unmanaged": 4}
    assert runs(cluster, "inner")[0]["outcomes"] == {"unmanaged": 1}


@pytest.mark.long
def test_a_preempted_job_gives_back_and_is_placed_when_it_runs_again(cluster: Cluster, writer: Path) -> None:
    out = cluster.loop.mount() / "low"
    step = f"{shlex.join(led('low'))} srun -n4 {writer} {out}/$SLURM_JOB_ID"
    job(cluster, f"{step} no", "-N4", "-n4")
    low = submit(
        cluster, f"rm -rf {out}/$SLURM_JOB_ID; {step} hold", "-N4", "-n4", "--exclusive", "--requeue"
    )
    until(lambda: len(list(out.glob(f"{low}/out.*"))) == 4, cluster, "the first attempt")
    job(
        cluster,
        f"{shlex.join(led('urgent'))} srun -n4 {writer} {out}/urgent no",
        "-N4",
        "-n4",
        "-p",
        "urgent",
    )
    until(lambda: remembered(cluster, "low") == 3, cluster, "the second attempt", wait_s=240)
    first, killed, again = runs(cluster, "low")
    assert (first["exit_status"], again["exit_status"]) == (0, 0) and killed["exit_status"] != 0
    assert again["outcomes"] == {"hit": 4}, cluster.loop.log()
    until(lambda: promised(cluster) == 0, cluster, "what was promised")
    assert left_behind(cluster) == []


@pytest.mark.long
def test_a_job_out_of_time_ends_as_it_would_and_what_was_promised_is_given_back(
    cluster: Cluster, writer: Path
) -> None:
    out = cluster.loop.mount() / "late"
    step = f"{shlex.join(led('late'))} srun -n4 {writer} {out}/$SLURM_JOB_ID"
    job(cluster, f"{step} no", "-N4", "-n4")
    late = submit(cluster, f"{step} hold; echo status $? > {out}/status", "-N4", "-n4", "-t", "1")
    until(lambda: len(list(out.glob(f"{late}/out.*"))) == 4, cluster, "the job")
    until(lambda: remembered(cluster, "late") == 2, cluster, "the end", wait_s=180)
    assert runs(cluster, "late")[1]["exit_status"] != 0
    assert "TIMEOUT" in cluster("scontrol", "show", "job", late)
    until(lambda: promised(cluster) == 0, cluster, "what was promised")
    assert left_behind(cluster) == []


@pytest.mark.long
def test_a_step_that_nobody_leads_is_recorded_where_the_site_wants_it(cluster: Cluster, writer: Path) -> None:
    """By the task prolog and the epilog; a step that `tarazu run` leads, shells and the batch script are left alone."""
    directory, out = cluster.slurm.directory, cluster.loop.mount() / "alone"
    scripts = {"task-prolog": "task_prolog", "node-epilog": "node_epilog"}
    before = {name: (directory / name).read_text() for name in scripts}
    # The testbed's clients have host names of their own, which the epilog, outside of it, does not see.
    (host,) = (path.name for path in (cluster.loop.testbed.directory / "clients").iterdir())
    for name, kind in scripts.items():
        printed = cluster.loop.tarazu("history", "gather", "--print", kind)
        assert printed.returncode == 0, printed
        text = printed.stdout.replace("%h", host, 1) if name == "node-epilog" else printed.stdout
        (directory / name).write_text(text)
    (directory / "env").write_text(f"#!/bin/sh\nenv | grep -c ^TARAZU_STEP=slurm >> {out}/$1\n")
    (directory / "env").chmod(0o755)
    out.mkdir()
    try:
        step = f"srun -n4 {writer} {out}/a no"
        shells = f"{directory}/env batch; srun -n1 {directory}/env task"
        job(
            cluster,
            f"{shells}; {step}; {shlex.join(led('aside'))} srun -n4 {writer} {out}/b no",
            "-N4",
            "-n4",
        )
        steps = cluster.loop.home / "steps"
        until(lambda: list(steps.glob("slurm-*-1-0-4/*.tzs")), cluster, "the epilogs")
        spools = cluster.loop.testbed.directory / "clients" / host / "spool"
        until(lambda: not list(spools.glob("slurm-*")), cluster, "the nodes' memory")
        gathered = cluster.loop.json("history", "gather")
    finally:
        for name, text in before.items():
            (directory / name).write_text(text)
    assert [(run["files"], run["complete"]) for run in gathered["remembered"]] == [(4, True)], gathered
    assert [(out / name).read_text() for name in ("batch", "task")] == ["0\n", "1\n"]
    (run,) = runs(cluster, gathered["remembered"][0]["application"])
    assert (run["ranks"], run["outcomes"]) == (4, {"unmanaged": 4})
    assert [run["outcomes"] for run in runs(cluster, "aside")] == [{"unmanaged": 4}]
