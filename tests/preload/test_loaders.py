"""Functions are found whatever the loader did: lists of other names, libraries that were moved, another libc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

Runs = Any


def test_a_program_with_a_variable_of_the_loaders_name_makes_its_files(plain: Runs, compiled: Any) -> None:
    done = plain([compiled("own_list.c", "-rdynamic")])
    assert (done.returncode, done.stderr) == (0, "")
    assert [c.key for c in plain.creates] == ["/f"]


def test_a_library_with_a_variable_of_the_loaders_name_takes_no_function_away(
    plain: Runs, compiled: Any
) -> None:
    library = compiled("own_list.c", "-shared", "-fPIC", "-DLIBRARY")
    done = plain(["touch", "f"], LD_PRELOAD=f"{library} {plain.library}")
    assert (done.returncode, done.stderr) == (0, "")
    assert [c.key for c in plain.creates] == ["/f"]


def test_libraries_that_were_linked_for_one_place_do_not_end_the_program(
    plain: Runs, compiled: Any, tmp_path: Path
) -> None:
    """One of them at least lies below where it was linked to lie: it was moved by a negative distance."""
    first = compiled("counter.c", "-shared", "-fPIC", "-ldl", "-Wl,-Ttext-segment=0x7ffffff00000")
    second = shutil.copy(first, tmp_path / "second.so")
    program = compiled("errors.c")
    done = plain([program], LD_PRELOAD=f"{plain.library} {first} {second}")
    assert done.returncode == 0, done.stderr
    assert [int(opens) > 5 for opens in done.stderr.split()] == [True, True]
    assert {"/f", "/g", "/c"} <= {c.key for c in plain.creates}


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="needs musl-gcc")
def test_a_program_of_musl_runs_though_the_library_is_not_for_it(plain: Runs, tmp_path: Path) -> None:
    source = Path(__file__).parent / "programs" / "one_file.c"
    subprocess.run(["musl-gcc", "-w", source, "-o", tmp_path / "program"], check=True)
    done = plain([tmp_path / "program", plain.mount / "f"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (plain.mount / "f").exists() and not plain.spool_directory.exists()
