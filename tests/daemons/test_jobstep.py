"""What a command line says of a job step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.daemons import gather, jobstep

WORDS = [
    *"mpirun srun flux numactl timeout taskset".split(),
    "env",
    "dd",
    "-n",
    "4",
    "A=1",
    "--",
    "python3",
    "-c",
    "x",
    "/nowhere",
]


@pytest.mark.parametrize(
    ("command", "application"),
    [
        ("dd if=/dev/zero of=x", "dd"),
        ("/usr/bin/dd if=x", "dd"),
        ("mpirun -np 4 dd -w", "dd"),
        ("mpirun --mca btl self,vader -np 4 -x PATH --host a,b dd -w", "dd"),
        ("srun -n 64 --cpu-bind=cores numactl --interleave all dd", "dd"),
        ("env A=1 B=2 dd", "dd"),
        ("python3 -u train.py --epochs 3", "train.py"),
        ("mpirun -np 2 python3 sim/run.py", "run.py"),
        ("python3 -m package.module x", "package.module"),
        ("python3 -c print(1)", "python3"),
        ("sh ./job.sh", "job.sh"),
        ("time -p nice -n 5 dd", "dd"),
    ],
)
def test_application_is_the_first_program_that_is_no_launcher(command: str, application: str) -> None:
    assert jobstep.application(command.split()) == application


@pytest.mark.parametrize(
    ("command", "environ", "ranks"),
    [
        ("dd", {}, 1),
        ("dd", {"SLURM_NTASKS": "64"}, 1),
        ("srun dd", {"SLURM_NTASKS": "64"}, 64),
        ("srun -n 8 dd", {"SLURM_NTASKS": "64"}, 8),
        ("srun --ntasks=12 -c 4 dd", {}, 12),
        ("mpirun -np 4 dd : -np 4 dd", {}, 8),
    ],
)
def test_ranks(command: str, environ: dict[str, str], ranks: int) -> None:
    assert jobstep.ranks(command.split(), environ) == ranks


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_any_command_line_has_an_application(words: list[str]) -> None:
    step = jobstep.identify(words, {}, fs_name="lustre")
    assert step.application and step.ranks >= 1


@pytest.mark.parametrize("command", ["env", "env env", "nohup", "mpirun", "srun", "time", "env dd env"])
def test_a_launcher_without_a_program_is_itself(command: str) -> None:
    assert jobstep.application(command.split()) in command


def test_numeric_arguments_of_the_application_are_regressors() -> None:
    words = "mpirun -np 4 dd -b 1g --steps=6 out.5 -t 2M x9".split()
    assert jobstep.identify(words, {}, fs_name="lustre").numbers == (float(1 << 30), 6.0, float(2 << 20))


@pytest.mark.parametrize(
    ("environ", "inside"),
    [
        ({}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_PROCID": "0"}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "4294967291"}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}, True),
        ({"OMPI_COMM_WORLD_RANK": "3"}, True),
        ({"TARAZU_STEP": "x"}, True),
    ],
)
def test_inside_a_job_step(environ: dict[str, str], inside: bool) -> None:
    assert jobstep.inside_job_step(["dd"], environ) is inside


def test_identity_has_no_ranks_in_its_key() -> None:
    step = jobstep.identify("srun -n 8 dd -b 1g".split(), {"SLURM_JOB_ID": "77"}, fs_name="lustre", uid=5)
    assert (step.fs_name, step.uid, step.application, step.job_id, step.ranks) == ("lustre", 5, "dd", "77", 8)


def test_gather_runs_once_per_node_where_a_launcher_says_which() -> None:
    words = "mpirun --host a:2,b:2 -np 4 dd".split()
    command = gather.command("auto", words, {}, "/dev/shm/s", "/home/u/d")
    assert command is not None
    assert command[:5] == ["mpirun", "--host", "a:2,b:2", "-npernode", "1"]
    assert command[-2:] == ["/dev/shm/s", "/home/u/d"]
    assert gather.command("auto", "mpirun -np 4 dd".split(), {}, "s", "d") is None
    assert gather.command("none", words, {}, "s", "d") is None
    assert gather.command("fetch {spool} to {dest}", words, {}, "s", "d") == ["fetch", "s", "to", "d"]
