"""Real mpirun over two hosts that share the file system alone: one map directory and one /dev/shm each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim import demo
from tests.loop import hosts, slurm
from tests.loop.conftest import Loop, make_loop
from tests.loop.reasons import Counted, everybody_says

pytestmark = pytest.mark.skipif(not hosts.possible(), reason="needs the right to make namespaces")

FIRST, SECOND = "client1", "client2"
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root"],
    "mpich": ["mpiexec.hydra", "-launcher", "ssh", "-iface", "lo"],
}
WRITER = """\
#!/bin/sh
# Each rank says where it is on both streams, in order, and writes its files.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}
while [ "$rank" != 0 ] && ! [ -e "$1/said.$((rank - 1))" ]; do sleep 0.05; done
sleep 0.05
echo "rank $rank on $(uname -n)$MINE"; echo "rank $rank complains" >&2
sleep 0.05; : > "$1/said.$rank"
for step in 0 1 2; do dd if=/dev/zero of="$2/dump.$step.$rank" bs=1M count=4 status=none; done
"""


@pytest.fixture(scope="module")
def loop(on_disk: Path) -> Iterator[Loop]:
    run = {"spool_dir": "/dev/shm/tarazu-{uid}", "gather": "auto"}
    changes: Any = {
        "layout": {"stripe_count": "paper", "striping": "raid0", "min_size": 0},
        "run": run,
    }
    yield from make_loop(on_disk / "tb", changes, clients=2, osss=1, osts_per_oss=35)


def emulated(loop: Loop, client: int) -> dict[str, str]:
    """The testbed's environment on a host that has its own name already."""
    return {k: v for k, v in loop.testbed.environment(client).items() if k != "TESTBED_HOST"}


class Two:
    """Steps from the first host."""

    def __init__(self, loop: Loop, both: hosts.Hosts, work: Path) -> None:
        self.loop, self.hosts, self.work = loop, both, work
        self.program = work / "writer"
        self.program.write_text(WRITER)
        self.program.chmod(0o755)
        self.runs = 0

    def launcher(self, kind: str, *, named: bool = True) -> list[object]:
        launcher = LAUNCHERS[kind]
        if not shutil.which(launcher[0]):
            pytest.skip(f"{launcher[0]} is not installed")
        agent = {
            "openmpi": ["--mca", "plm_rsh_agent", self.hosts.agent, "--mca", "oob_tcp_if_include", "lo"],
            "mpich": ["-launcher-exec", self.hosts.agent],
        }[kind]
        chosen = {"openmpi": "--host", "mpich": "-hosts"}[kind]
        return [*launcher, *agent, *([chosen, self.hosts.names] if named else []), "-np", "2"]

    def run(
        self,
        app: str,
        launcher: Sequence[object],
        *,
        under: bool = True,
        env: dict[str, str] | None = None,
        allocation: Sequence[object] = (),
    ) -> subprocess.CompletedProcess[str]:
        """The writer on both hosts, as it is or under tarazu; it must end with status 0."""
        self.loop.clear()
        self.runs += 1
        said = self.work / f"said{self.runs}"
        said.mkdir()
        folder = self.loop.testbed.mount / app
        folder.mkdir(exist_ok=True)
        job = [str(word).format(said=said, folder=folder) for word in launcher]
        job += [str(self.program), str(said), str(folder)]
        if under:
            job = demo.tarazu_command("run", "--app", app, "--mode", "place", "--", *map(str, job))
        environ = os.environ | emulated(self.loop, 0) | (env or {})
        if not under:
            environ = {k: v for k, v in environ.items() if not k.startswith("TARAZU_")}
        done = subprocess.run(
            self.hosts.on(FIRST, *allocation, *job), env=environ, capture_output=True, text=True, timeout=300,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done, self.loop.log())
        return done

    def outcomes(self, app: str) -> dict[str, int]:
        """Of the newest run, which must be complete."""
        record = self.loop.json("history", "list", app)[-1]
        assert record["complete"] and record["files"] == 6, (record, self.line, self.loop.log())
        return record["outcomes"]

    @property
    def line(self) -> str:
        return (self.loop.home / "jobs.log").read_text().splitlines()[-1]


@pytest.fixture(scope="module")
def two(loop: Loop, on_disk: Path) -> Iterator[Two]:
    maps = loop.home / "maps"
    maps.mkdir()
    work = on_disk / "hosts"
    work.mkdir()
    login = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "USER", "LANG")}
    environments = {name: login | emulated(loop, i) for i, name in enumerate(loop.testbed.client_names)}
    with hosts.make_hosts(work, environments, [maps]) as both:
        yield Two(loop, both, work)


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_program_over_two_hosts_has_its_own_streams_and_its_files_are_placed(two: Two, kind: str) -> None:
    launcher = two.launcher(kind)
    plain = two.run(f"plain{kind}", launcher, under=False)
    assert plain.stdout == f"rank 0 on {FIRST}\nrank 1 on {SECOND}\n"
    for run in (1, 2):
        done = two.run(kind, launcher)
        assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
        assert two.outcomes(kind) == ({"unmanaged": 6} if run == 1 else {"hit": 6})
        assert "problem=" not in two.line
        for name in (FIRST, SECOND):
            assert two.hosts.files(name, "/dev/shm") == []


@pytest.mark.long
def test_ranks_of_rank_files_and_of_several_programs_are_reached(two: Two) -> None:
    """Open MPI refuses the same host file twice, and `--map-by` beside a rank file."""
    ranks, listed = two.work / "ranks", two.work / "listed"
    ranks.write_text(f"rank 0={FIRST} slot=0\nrank 1={SECOND} slot=0\n")
    listed.write_text(f"{FIRST} slots=1\n{SECOND} slots=1\n")
    launcher = two.launcher("openmpi", named=False)
    one = [*launcher[:-1], "1"]
    first = [*one, "--hostfile", listed, two.program, "{said}", "{folder}"]
    ways = {"rankfile": [*launcher, "-rf", ranks], "several": [*first, ":", "-np", "1", "--hostfile", listed]}
    for name, way in ways.items():
        for files in ({"unmanaged": 6}, {"hit": 6}):
            two.run(name, way)
            assert two.outcomes(name) == files and "problem=" not in two.line


@pytest.mark.long
@pytest.mark.parametrize("kind", LAUNCHERS)
def test_what_a_login_prints_is_no_answer(two: Two, kind: str) -> None:
    """The shell's own files print on each login, on both streams and without an end of line."""
    launcher, agent = two.launcher(kind), two.hosts.agent
    quiet = agent.read_text()
    agent.write_text(
        quiet.replace("#!/bin/sh\n", "#!/bin/sh\nprintf 'Welcome\\nYou have mail '; echo Maintenance >&2\n")
    )
    try:
        plain = two.run(f"motd{kind}", launcher, under=False)
        for files in ({"unmanaged": 6}, {"hit": 6}):
            done = two.run(f"login{kind}", launcher)
            assert sorted(done.stdout) == sorted(plain.stdout) and sorted(done.stderr) == sorted(plain.stderr)
            assert two.outcomes(f"login{kind}") == files
    finally:
        agent.write_text(quiet)


def test_variables_that_a_launcher_keeps_from_a_host_are_missed_there(two: Two) -> None:
    launcher = two.launcher("mpich")
    two.run("few", [*launcher, "-genvlist", "PATH"])
    assert f"problem='spools of 1 rank are lost: {SECOND} recorded nothing'" in two.line


def test_a_plan_that_cannot_travel_is_missed_and_the_line_says_by_whom(two: Two) -> None:
    launcher, counted = two.launcher("openmpi"), Counted(two.loop)
    two.run("alone", launcher)
    before = counted.of("too late")
    two.run("alone", launcher, env={"TARAZU_RUN_SPOOL_DIR": "/dev/shm/tarazu-{uid}-%h"})
    assert two.outcomes("alone") == {"hit": 3, "late": 3}
    assert f"problem='{two.loop.home}/maps is not shared by {SECOND} (run.map_dir)'" in two.line
    why = "too late: its map was written in time, and had not reached the process"
    everybody_says(two.loop, "alone", why, files=3, of=6, path=two.loop.mount() / "alone/dump.0.1")
    counted.wait("too late", before + 3)


def test_a_host_that_is_gone_at_the_end_costs_its_spools_alone(two: Two) -> None:
    launcher = two.launcher("openmpi")
    pid = two.work / f"{SECOND}.pid"
    two.program.write_text(f"{WRITER}[ $rank = 0 ] || mv {pid} {pid}.gone\n")
    try:
        done = two.run("gone", launcher)
    finally:
        two.program.write_text(WRITER)
        Path(f"{pid}.gone").rename(pid)
    left = two.hosts.files(SECOND, "/dev/shm")
    assert left and subprocess.run(two.hosts.on(SECOND, "rm", *left), check=True)
    assert done.stdout == f"rank 0 on {FIRST}\nrank 1 on {SECOND}\n"
    assert two.loop.json("history", "list", "gone")[-1]["files"] == 3
    assert f"problem='spools of other nodes are lost: {launcher[0]}: ended with status" in two.line


@pytest.mark.long
def test_the_users_own_variables_reach_other_hosts_beside_ours(two: Two) -> None:
    """His list in the environment, in his file, `-x` or a file with one, which Open MPI refuses beside a list."""
    launcher = two.launcher("openmpi")
    home = two.work / "somebody"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi" / "mca-params.conf").write_text("mca_base_env_list = MINE\n")
    option = [*launcher[:1], "-x", "MINE", *launcher[1:]]
    tuned = two.work / "tune.conf"
    tuned.write_text("-x MINE\n")
    ways = [
        (launcher, {"OMPI_MCA_mca_base_env_list": "MINE"}, 6),
        (launcher, {"HOME": str(home)}, 6),
        (option, {}, 6),
        ([*launcher, "--tune", tuned], {}, 3),
    ]
    for way, env, files in ways:
        done = two.run("own", way, env={"MINE": " of mine", **env})
        expected = f"rank 0 on {FIRST} of mine\nrank 1 on {SECOND} of mine\n"
        assert (done.stdout, done.stderr) == (expected, "rank 0 complains\nrank 1 complains\n")
        assert two.loop.json("history", "list", "own")[-1]["files"] == files


def test_the_hosts_of_a_pbs_job_are_asked_for_their_spools(two: Two) -> None:
    """hydra finds `$PBS_NODEFILE` by itself."""
    nodes = two.work / "nodefile"
    nodes.write_text(f"{FIRST}\n{SECOND}\n")
    env = {"PBS_NODEFILE": str(nodes), "PBS_JOBID": "12.server"}
    for files in ({"unmanaged": 6}, {"hit": 6}):
        done = two.run("pbs", two.launcher("mpich", named=False), env=env)
        assert done.stdout == f"rank 0 on {FIRST}\nrank 1 on {SECOND}\n"
        assert two.outcomes("pbs") == files


@pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing() or "Slurm is there")
def test_slurm_over_two_hosts_whatever_the_user_has_set_for_his_own_steps(two: Two) -> None:
    where = [two.hosts.on(name) for name in (FIRST, SECOND)]
    for cluster in slurm.up(two.work / "slurm", hosts=where):
        job = ["srun", "-N2", "-n2", "-c1", "--ntasks-per-node=1", "--output=all"]
        his = {
            "SLURM_LABELIO": "1",
            "SLURM_STDOUTMODE": "none",
            "SLURM_CPUS_PER_TASK": "8",
            "SRUN_CPUS_PER_TASK": "8",
        }
        for run, env in enumerate(({}, his)):
            done = two.run(
                "slurm", job, env=cluster.env | env, allocation=["salloc", "-Q", "-N2", "-n2", "-c4"]
            )
            label = ["0: ", "1: "] if env else ["", ""]
            told = f"{label[0]}rank 0 on {FIRST}\n{label[1]}rank 1 on {SECOND}\n"
            assert done.stdout == told, cluster.log()
            assert two.outcomes("slurm") == ({"hit": 6} if run else {"unmanaged": 6}), cluster.log()
            assert "problem=" not in two.line
            assert two.hosts.files(SECOND, "/dev/shm") == []
