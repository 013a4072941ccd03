"""A real Slurm gives data-intensive jobs nodes of more I/O nodes, and never waits for who advises it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop import slurm as private_slurm
from tests.parts.bursts.loop.site import ANSWER_S, LEAVES, NO_PLUGIN, NODES, Bursts, remember
from tests.parts.bursts.loop.troubles import TROUBLES

NOT_HERE = private_slurm.missing() or private_slurm.missing_lua()
pytestmark = pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE or "Slurm is there")

HOSTILE = 'io"\\ \n%s|é'
APPLICATIONS = {
    "io": [20.0] * 4,
    "uneven": [30.0, 10.0, 10.0, 10.0],
    "rank0": [80.0, 0.1, 0.1, 0.1],
    "little": [0.1] * 4,
    HOSTILE: [20.0] * 2,
}
SUBMITTED = 3


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bursts]:
    directory = tmp_path_factory.mktemp("bursts")
    for slurm in private_slurm.up(
        directory / "slurm",
        nodes=NODES,
        leaves=LEAVES,
        backfill=True,
        more="JobSubmitPlugins=lua\nLicenses=one:1\n",
        files={"job_submit.lua": NO_PLUGIN},
    ):
        bursts = Bursts(directory, slurm)
        bursts.configure()
        bursts.plugin(ANSWER_S)
        remember(bursts.kept, "root", APPLICATIONS)
        bursts.start()
        yield bursts
        bursts.stop()


@pytest.fixture(autouse=True)
def empty(bursts: Bursts) -> Iterator[None]:
    yield
    bursts.cancel()


def test_data_intensive_jobs_are_spread_and_others_are_left_alone(bursts: Bursts) -> None:
    mix = {name: bursts.submit("-N4", "-J", name) for name in ("little", "uneven", "io")}
    mix["unheard-of"] = bursts.submit("-N2", "-J", "unheard-of")
    jobs = {name: bursts.started(id) for name, id in mix.items()}
    assert {name: bursts.leaves(id) for name, id in mix.items()} == {
        "little": 1,
        "io": 2,
        "unheard-of": 1,
        "uneven": 2,
    }, bursts.log()
    assert {name for name, job in jobs.items() if job["ReqNodeList"] != "(null)"} == {"io", "uneven"}
    # Half of the traffic each: that of the first rank, and that of the others.
    first, *rest = bursts.run("scontrol", "show", "hostnames", jobs["uneven"]["NodeList"]).split()
    assert len({(int(node[1:]) - 1) // 4 for node in rest}) == 1 and int(first[1:]) <= int(rest[0][1:]) - 2
    assert bursts.record("little")["why"] == "not data-intensive"
    assert bursts.record("unheard-of")["why"] == "not enough jobs of this application are known"
    bursts.until(lambda: bursts.record("io")["started"] == 1)


def test_whoever_submits_and_however_it_is_named(bursts: Bursts) -> None:
    shown = bursts.run("srun", "-N4", "-J", "io", "--exclusive", "hostname", "-s").split()
    assert len(shown) == 4 and bursts.record("io")["given"] >= 1
    assert bursts.leaves(bursts.submit("-N2", "-J", HOSTILE)) == 2
    assert bursts.leaves(bursts.submit("-N4", "-J", "rank0")) == 1
    assert bursts.record("rank0")["why"] == "one node does its I/O"


def test_what_the_user_said_of_nodes_counts(bursts: Bursts, tmp_path: Path) -> None:
    before = bursts.record("io")["asked"]
    (tmp_path / "nodes").write_text("n3\nn4\n")
    wishes = {
        "-wn3,n4": "n[3-4]",
        "-xn1": "(null)",
        "--switches=1": "(null)",
        "--contiguous": "(null)",
        "--spread-job": "(null)",
        f"--nodefile={tmp_path}/nodes": "n[3-4]",
        "-N2-4": "(null)",
        "-a1": "(null)",
    }
    for wish, named in wishes.items():
        job = bursts.job(bursts.submit("-N2", "-J", "io", wish, "-H"))
        assert job["ReqNodeList"] == named, wish
    assert bursts.record("io")["asked"] == before
    # Held, but nothing said of nodes: asked about, and left alone.
    assert bursts.job(bursts.submit("-N4", "-J", "io", "-H"))["ReqNodeList"] == "(null)"
    assert bursts.record("io")["asked"] == before + 1
    assert bursts.record("io")["why"] == "it does not start now"


def test_advice_is_shown_to_who_submits_and_changes_nothing(bursts: Bursts) -> None:
    bursts.until(lambda: bursts.status()["idle"] == NODES)
    bursts.order("advise")
    words = ["sbatch", "-N4", "-J", "io", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 60"]
    done = subprocess.run(words, env=bursts.env, capture_output=True, text=True, check=True)
    assert "sbatch: tarazu: --nodelist=n[1-2,5-6] would serve this job better" in done.stderr
    assert bursts.leaves(done.stdout.split()[-1]) == 1
    bursts.order("apply")


def _somebody_has_the_licence(bursts: Bursts) -> None:
    """And the daemon knows where he runs: else those nodes may be asked for, and taken back as soon as he is seen."""
    bursts.started(bursts.submit("-N1", "-L", "one"))
    bursts.until(lambda: bursts.status()["idle"] == NODES - 1)


def test_nodes_asked_for_are_given_back_when_the_job_does_not_start(bursts: Bursts) -> None:
    _somebody_has_the_licence(bursts)
    waiting = bursts.submit("-N4", "-J", "io", "-L", "one")
    assert bursts.job(waiting)["ReqNodeList"] != "(null)"
    bursts.signal(signal.SIGKILL)
    bursts.start(wait_s=0.5)
    bursts.until(lambda: bursts.job(waiting)["ReqNodeList"] == "(null)")
    assert "has not started within 0.5 s" in (bursts.directory / "burstd.log").read_text()
    bursts.signal(signal.SIGKILL)
    bursts.start()


def test_undo_after_a_kill_and_a_restart_that_goes_on(bursts: Bursts) -> None:
    _somebody_has_the_licence(bursts)
    waiting = [bursts.submit("-N4", "-J", "io", "-L", "one") for _ in range(2)]
    assert all(bursts.job(id)["ReqNodeList"] != "(null)" for id in waiting)
    bursts.signal(signal.SIGKILL)
    assert bursts.tarazu("change", "bursts", "nodes", "--undo").stdout.count("restored: nodes root/io") == 2
    assert all(bursts.job(id)["ReqNodeList"] == "(null)" for id in waiting)
    bursts.start()
    bursts.submit("-N4", "-J", "io", "-L", "one")
    assert bursts.record("io")["given"] == 0 and bursts.record("io")["would"] == 1
    bursts.order("apply")
    again = bursts.submit("-N2", "-J", HOSTILE, "-L", "one")
    assert bursts.job(again)["ReqNodeList"] != "(null)"
    bursts.signal(signal.SIGKILL)
    bursts.order("observe")
    bursts.start()
    bursts.until(lambda: bursts.job(again)["ReqNodeList"] == "(null)")
    bursts.order("apply")


def test_a_job_that_is_put_back_into_the_queue_waits_for_no_certain_nodes(bursts: Bursts) -> None:
    id = bursts.submit("-N4", "-J", "io", "--requeue")
    bursts.started(id)
    bursts.until(lambda: bursts.record("io")["started"] > 0)
    bursts.signal(signal.SIGKILL)
    bursts.start(wait_s=0.5)
    bursts.run("scontrol", "requeue", id)
    bursts.until(lambda: bursts.job(id)["ReqNodeList"] == "(null)")
    bursts.signal(signal.SIGKILL)
    bursts.start()


@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_submission_waits_for_a_daemon_in_trouble_and_none_is_lost(bursts: Bursts, trouble: str) -> None:
    bursts.plugin(0.02)
    with TROUBLES[trouble](bursts):
        for _ in range(SUBMITTED):
            bursts.submit("-N4", "-J", "io", "-H")
        queued = bursts.run("squeue", "-h", "-o", "%i %n").splitlines()
    assert len(queued) == SUBMITTED and all(len(line.split()) == 1 for line in queued), queued
    bursts.plugin(ANSWER_S)
    assert os.path.exists(bursts.socket)
