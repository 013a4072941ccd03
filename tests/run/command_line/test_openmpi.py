"""Our variables reach other nodes beside what the user asks of Open MPI."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tarazu.run.command_line import launchers

FIRST, SECOND = launchers.OPEN_MPI_LIST, launchers.SECOND_LIST
TUNED = "mca_base_envar_file_prefix"


LISTS: Sequence[tuple[str, dict[str, str], str | None]] = [
    ("mpirun -np 2 app", {}, "A;B"),
    ("mpirun.openmpi -np 2 app -x 5", {}, "A;B"),
    ("time orterun app", {}, "A;B"),
    ("mpirun --am file -np 2 app", {}, "A;B"),
    ("mpirun --tune file -np 2 app", {}, None),
    ("mpirun --tune file -x HIS -np 2 app", {}, None),
    (f"mpirun --mca {TUNED} file -np 2 app", {}, None),
    ("mpirun app", {f"OMPI_MCA_{TUNED}": "file"}, None),
    ("mpirun -x HIS app", {FIRST: "HIS"}, None),
    ("srun -n 2 app", {}, None),
    ("app", {}, None),
    ("mpirun app", {launchers.OPEN_MPI_LIST: "HIS;C=1"}, "HIS;C=1;A;B"),
    (
        "mpirun app",
        {launchers.OPEN_MPI_LIST: "HIS,C=1", f"{launchers.OPEN_MPI_LIST}_delimiter": ","},
        "HIS,C=1,A,B",
    ),
]


@pytest.mark.parametrize(("words", "environ", "expected"), LISTS)
def test_open_mpis_list_of_variables(
    words: str, environ: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    made = launchers.open_mpi_forwarded(words.split(), {"HOME": str(tmp_path), **environ}, ["A", "B"])
    assert made == ({launchers.OPEN_MPI_LIST: expected} if expected else {})


def test_beside_x_ours_are_a_second_list_that_open_mpi_does_not_refuse(tmp_path: Path) -> None:
    for words in ("mpirun -x HIS -np 2 app", "mpirun -np 1 app : -x HIS=1 -np 2 app"):
        assert launchers.open_mpi_forwarded(words.split(), {"HOME": str(tmp_path)}, ["A", "B"]) == {
            SECOND: "A;B"
        }


def test_a_list_in_a_file_is_not_hidden(tmp_path: Path) -> None:
    files = [
        tmp_path / "home" / ".openmpi" / "mca-params.conf",
        tmp_path / "mpi" / "etc" / "openmpi-mca-params.conf",
    ]
    program = tmp_path / "mpi" / "bin" / "mpirun"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/true", program)
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(program.parent)}
    for file, name in zip(reversed(files), ("SITE", "HIS"), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(f"# mca_base_env_list = no\nbtl = tcp\n mca_base_env_list = {name}\n")
        assert launchers.open_mpi_forwarded(["mpirun", "app"], environ, ["A"]) == {
            launchers.OPEN_MPI_LIST: f"{name};A"
        }
        assert launchers.open_mpi_forwarded(["mpirun", "-x", "B", "app"], environ, ["A"]) == {}
    files[0].write_text(f"{TUNED} = his.conf\n")
    assert launchers.open_mpi_forwarded(["mpirun", "app"], environ, ["A"]) == {}
