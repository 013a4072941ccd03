"""What a command line says of a job step."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.run.command_line import job_step

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
    assert job_step.identify(command.split(), {}, fs_name="lustre").application == application


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
    assert job_step.identify(command.split(), environ, fs_name="lustre").ranks == ranks


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_any_command_line_has_an_application(words: list[str]) -> None:
    step = job_step.identify(words, {}, fs_name="lustre")
    assert step.application and step.ranks >= 1


@pytest.mark.parametrize("command", ["env", "env env", "nohup", "mpirun", "srun", "time", "env dd env"])
def test_a_launcher_without_a_program_is_itself(command: str) -> None:
    assert job_step.identify(command.split(), {}, fs_name="lustre").application in command


def test_numeric_arguments_of_the_application_are_regressors() -> None:
    words = "mpirun -np 4 dd -b 1g --steps=6 out.5 -t 2M x9".split()
    assert job_step.identify(words, {}, fs_name="lustre").numbers == (float(1 << 30), 6.0, float(2 << 20))


STEP = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}
SHELL = {"SLURM_PROCID": "0", "SLURM_PTY_PORT": "4711"}


@pytest.mark.parametrize(
    ("environ", "inside"),
    [
        ({}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_PROCID": "0"}, False),
        ({"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "4294967291"}, False),
        ({**STEP}, True),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}, True),
        ({**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, False),
        ({**STEP, **SHELL, "SLURM_STEP_NUM_TASKS": "1", "PMI_RANK": "0", "PMI_SIZE": "1"}, False),
        ({**STEP, **SHELL, "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"}, False),
        (
            {**STEP, **SHELL, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"},
            False,
        ),
        ({**STEP, **SHELL, "SLURM_STEP_NUM_TASKS": "1", "PMI_RANK": "0", "PMI_SIZE": "4"}, True),
        ({**STEP, **SHELL, "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "3"}, True),
        (
            {**STEP, "SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
            True,
        ),
        ({"OMPI_COMM_WORLD_RANK": "3"}, True),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"}, False),
        ({"PMIX_RANK": "0"}, True),
        ({"PBS_JOBID": "1.pbs", "PBS_ENVIRONMENT": "PBS_INTERACTIVE"}, False),
        ({"LSB_JOBID": "1", "LSB_INTERACTIVE": "Y"}, False),
        ({"FLUX_TASK_RANK": "2", "FLUX_JOB_SIZE": "4"}, True),
        ({"FLUX_URI": "local:///run/flux/local"}, False),
        ({"TARAZU_STEP": "x"}, True),
    ],
)
def test_inside_a_job_step(environ: dict[str, str], inside: bool) -> None:
    assert job_step.inside_job_step(["dd"], environ) is inside


@pytest.mark.parametrize("command", ["mpirun -np 4 dd", "nice srun -n 2 dd", "sh -c 'mpirun dd'"])
def test_a_command_with_a_launcher_is_a_step_of_its_own_wherever_it_is_typed(command: str) -> None:
    words = shlex.split(command)
    assert not job_step.inside_job_step(words, {**STEP, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"})
    assert job_step.inside_job_step(words, {"TARAZU_STEP": "x"})


@pytest.mark.parametrize(
    ("environ", "array"),
    [
        ({}, ("", None)),
        ({"SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "0", "SLURM_JOB_ID": "71"}, ("70", 0)),
        ({"PBS_JOBID": "12[3].pbs", "PBS_ARRAY_INDEX": "3"}, ("", 3)),
        ({"PBS_JOBID": "12[3].pbs", "PBS_ARRAYID": "3"}, ("", 3)),
        ({"LSB_JOBID": "9", "LSB_JOBINDEX": "4"}, ("", 4)),
        ({"LSB_JOBID": "9", "LSB_JOBINDEX": "0"}, ("", None)),
        ({"JOB_ID": "9", "SGE_TASK_ID": "2"}, ("", 2)),
        ({"JOB_ID": "9", "SGE_TASK_ID": "undefined"}, ("", None)),
    ],
)
def test_the_index_of_an_array_task_is_known(environ: dict[str, str], array: tuple[str, int | None]) -> None:
    step = job_step.identify(["dd"], environ, fs_name="lustre")
    assert (step.array_job, step.array_index) == array


def test_identity_has_no_ranks_in_its_key() -> None:
    step = job_step.identify("srun -n 8 dd -b 1g".split(), {"SLURM_JOB_ID": "77"}, fs_name="lustre", uid=5)
    assert (step.fs_name, step.uid, step.application, step.job_id, step.ranks) == ("lustre", 5, "dd", "77", 8)
