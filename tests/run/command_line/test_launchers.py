"""The command lines of table.md, line by line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.run.command_line import job_step, launchers
from tarazu.run.command_line.launcher_options import DIALECTS
from tests.mpi import MPICH_RUN, OPENMPI_RUN

WORDS = [
    *sorted(DIALECTS),
    *"-n -n4 -np 4 --ntasks=4 --ntasks -N 2 -c -J --host a:2 -- - : A=1 run exec -x --mca b --multi-prog".split(),
    *"python3 sh perl java torchrun -m mpi4py -W -e -lc -jar +o script.py 0 /nowhere .. / ppr:0:node -map-by".split(),
    "mpirun -n 2 dd",
]
DOCUMENT = Path(__file__).with_name("table.md")


def table() -> list[list[str]]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    return [[c.strip().strip("`") for c in line.split("|")[1:-1]] for line in lines if line[:3] == "| `"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.txt").write_text("# two hosts\na slots=3\nb slots=3\n")
    (tmp_path / "programs.conf").write_text("# coupled\n0 ocean.exe 12\n1-3 ice.exe\n")
    (tmp_path / "nodes.txt").write_text("a\na\nb\nb\n")
    (tmp_path / "pe_hosts.txt").write_text("a 4 all.q@a UNDEFINED\nb 2 all.q@b UNDEFINED\n")


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_the_table_of_command_lines(row: list[str]) -> None:
    command, settings, application, ranks, nodes, numbers = row
    environ = dict(word.split("=", 1) for word in settings.split())
    if "LSB_MCPU_HOSTS" in environ:
        environ["LSB_MCPU_HOSTS"] = environ["LSB_MCPU_HOSTS"].replace("-", " ")
    step = job_step.identify(shlex.split(command), environ, fs_name="lustre")
    expected = (application, int(ranks), int(nodes), tuple(float(n) for n in re.findall(r"\d+", numbers)))
    assert (step.application, step.ranks, step.nodes, step.numbers) == expected


def test_the_table_is_long_enough_and_whole() -> None:
    rows = table()
    assert len(rows) >= 60 and all(len(row) == 6 for row in rows)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    "command",
    [
        "mpirun -np 3",
        "mpirun --host localhost:2,localhost:1 --tag-output",
        "mpirun --map-by ppr:2:node --mca btl self,vader -x HOME",
        "mpirun -npernode 2 --output-filename test --bind-to none",
        "mpirun -c 2 --wdir /tmp -am /dev/null",
        "mpirun -n 1 {echo} : -n 2",
        "mpiexec.hydra -n 3 -genv A true -l",
        "mpiexec.hydra -hosts localhost -ppn 2 -n 4 -env B c -prepend-rank -bind-to none",
        "mpiexec.hydra -n 1 {echo} : -np 2",
        "mpiexec.hydra -launcher fork -rmk user -iface lo",
    ],
)
def test_the_ranks_that_an_mpi_launcher_starts_are_those_that_were_read(command: str) -> None:
    echo = "sh -c 'echo started'"
    words = shlex.split(command.format(echo=echo)) + shlex.split(echo)
    launcher = {"mpirun": OPENMPI_RUN, "mpiexec.hydra": MPICH_RUN}[words[0]]
    if shutil.which(launcher) is None:
        pytest.skip(f"needs {launcher} (Debian: openmpi-bin, mpich)")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environ = {**os.environ, **as_root, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    for _ in range(3):  # hydra itself dies of SIGPIPE now and then, when its ranks end at once
        done = subprocess.run(
            [launcher, *words[1:]], env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode != -signal.SIGPIPE:
            break
    assert done.returncode == 0, done
    output = done.stdout
    if "--output-filename" in words:
        output = "".join(path.read_text() for path in Path("test").rglob("stdout"))
    assert output.count("started") == job_step.identify(words, {}, fs_name="lustre").ranks


@pytest.mark.parametrize(
    "options", ["-host a,b", "--hostfile h -x A", "-machinefile m --prefix /opt -wdir /tmp"]
)
def test_options_that_choose_hosts_are_kept_word_by_word(options: str) -> None:
    line = launchers.parse(["mpirun", *options.split(), "-np", "4", "./app", "-host", "x"])
    kept = [word for option in line.host_options[0] for word in option.words]
    assert " ".join(kept) in (options, "--hostfile h", "-machinefile m --prefix /opt")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=10))
def test_any_command_line_is_read(words: list[str]) -> None:
    line = launchers.parse(words)
    assert line.programs[0][0] == words[line.program_index]
    assert len([w for program in line.programs for w in program]) <= len(words)
    step = job_step.identify(words, {}, fs_name="lustre")
    assert step.application and step.ranks >= 1 and step.nodes >= 1
