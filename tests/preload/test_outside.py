"""What the program's environment reaches but is none of the program's own: it is left, and nothing is handed on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tarazu import built

LIBRARY = str(built.library_path("libtarazu.so"))
OTHER = "/nowhere/libother.so"
SETTINGS = {
    "TARAZU_STEP": "20260101T000000-1-abcdef-n1",
    "TARAZU_MAP": "/nowhere/map",
    "TARAZU_JOB": "7",
    "TARAZU_RUN_MODE": "place",
    "TARAZU_DISABLE": "0",
    "OMPI_MCA_mca_base_env_list": "MINE;LD_PRELOAD;TARAZU_STEP;TARAZU_JOB",
    "OMPI_MCA_mca_base_env_list_internal": "LD_PRELOAD;TARAZU_MAP",
}
ITS_OWN = ("TARAZU_RUN_MODE", "TARAZU_DISABLE")


def environment_below(tmp_path: Path, name: str, preload: str = LIBRARY, **more: str) -> dict[str, str]:
    """What a program of that name hands on to what it starts."""
    program = tmp_path / name
    program.symlink_to("/bin/sh")
    environ = {
        "PATH": os.environ["PATH"],
        "LD_PRELOAD": preload,
        "TARAZU_SPOOL": str(tmp_path),
        **SETTINGS,
        **more,
    }
    done = subprocess.run(
        [program, "-c", "env -0; true"], env=environ, capture_output=True, text=True, check=True, timeout=300
    )
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


@pytest.mark.parametrize("name", ["sbatch", "qsub", "bsub", "msub", "yhbatch"])
def test_a_submission_takes_nothing_of_ours_along(tmp_path: Path, name: str) -> None:
    left = environment_below(tmp_path, name)
    assert "LD_PRELOAD" not in left and "OMPI_MCA_mca_base_env_list_internal" not in left
    assert left["OMPI_MCA_mca_base_env_list"] == "MINE"
    assert sorted(n for n in left if n.startswith("TARAZU_")) == sorted(ITS_OWN)


def test_preloads_of_others_stay(tmp_path: Path) -> None:
    libc = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    other = next(line.split()[2] for line in libc.splitlines() if "libc.so" in line)
    assert environment_below(tmp_path, "sbatch", f"{other}:{LIBRARY}")["LD_PRELOAD"] == other
    tmp_path.joinpath("sbatch").unlink()
    assert environment_below(tmp_path, "sbatch", f"{LIBRARY} {other}")["LD_PRELOAD"] == other


@pytest.mark.parametrize("context", ["prolog_task", "epilog_task", "prolog_srun", "prolog_slurmd", ""])
def test_a_programs_own_process_keeps_it_whatever_the_variable_says(tmp_path: Path, context: str) -> None:
    """Tasks have the variable of the prologs before them."""
    kept = environment_below(tmp_path, "sh", SLURM_SCRIPT_CONTEXT=context)
    assert kept["LD_PRELOAD"] == LIBRARY and SETTINGS.items() <= kept.items()
