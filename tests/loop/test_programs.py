"""Unmodified programs under `tarazu run`: recorded once, placed the next time, themselves all along."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.mpi import OPENMPI_CC, OPENMPI_RUN

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

MIB = 1 << 20

THREADS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static const char *folder;
static void *work(void *argument)
{
    char path[4096], block[65536];
    memset(block, 'x', sizeof block);
    snprintf(path, sizeof path, "%s/thread.%ld", folder, (long)argument);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    for (int i = 0; i < 64; i++)
        if (write(fd, block, sizeof block) != sizeof block)
            return (void *)1;
    return (void *)(long)(close(fd) != 0);
}
int main(int argc, char **argv)
{
    pthread_t threads[12];
    void *failed;
    long bad = argc != 2;
    folder = argv[1];
    for (long i = 0; i < 12; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 12; i++) { pthread_join(threads[i], &failed); bad |= (long)failed; }
    printf("wrote 12 files\n");
    return bad ? 3 : 0;
}
"""

MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    int rank, ranks;
    char path[4096], *block = malloc(1 << 20);
    MPI_File shared;
    FILE *own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memset(block, 'a' + rank, 1 << 20);
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &shared);
    for (int i = 0; i < 4; i++)
        MPI_File_write_at_all(shared, (MPI_Offset)(rank * 4 + i) << 20, block, 1 << 20, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&shared);
    snprintf(path, sizeof path, "%s/own.%04d", argv[1], rank);
    own = fopen(path, "w");
    fwrite(block, 1, 1 << 20, own);
    fclose(own);
    MPI_Finalize();
    return 0;
}
"""

PYTHON = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
for step in range(3):
    with open(folder / f"step{step}", "wb") as file:
        for _ in range(5 + step):
            file.write(bytes(1 << 20))
print("done")
"""


def compiled(source: str, path: Path, *command: str) -> Path:
    path.with_suffix(".c").write_text(source)
    subprocess.run([*command, str(path.with_suffix(".c")), "-o", str(path)], check=True)
    return path


def placed_as_planned(loop: Loop, app: str) -> int:
    """Rows of the newest plan whose file has exactly the OSTs and stripes of its row, read back from the MDS."""
    rows = loop.rows(app)
    for row in rows:
        assert row["outcome"] == "hit", row
        actual = loop.testbed.layout(row["actual_key"].lstrip("/"))
        planned = [tuple(osts) for osts in row["placement"]["osts"]]
        assert list(actual.osts) == planned, row
        wanted = [(c["stripe_count"], c["stripe_size_bytes"]) for c in row["layout"]["components"]]
        assert [(c.stripe_count, c.stripe_size_bytes) for c in actual.layout.components] == wanted
    return len(rows)


def dd(folder: Path, _: Path) -> list[object]:
    return ["dd", "if=/dev/zero", f"of={folder}/out", "bs=1M", "count=24", "status=none"]


def python(folder: Path, tmp: Path) -> list[object]:
    (tmp / "steps.py").write_text(PYTHON)
    return [sys.executable, tmp / "steps.py", folder]


def threads(folder: Path, tmp: Path) -> list[object]:
    return [compiled(THREADS, tmp / "threads", "cc", "-O1", "-pthread"), folder]


def mpi(folder: Path, tmp: Path) -> list[object]:
    for program, package in ((OPENMPI_RUN, "openmpi-bin"), (OPENMPI_CC, "libopenmpi-dev")):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (Debian: {package})")
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"]
    return [OPENMPI_RUN, *options, "-np", "4", compiled(MPI, tmp / "mpi", OPENMPI_CC), folder]


@pytest.mark.parametrize(
    ("program", "files", "output"),
    [
        (dd, 1, ""),
        pytest.param(python, 3, "done\n", marks=pytest.mark.long),
        pytest.param(threads, 12, "wrote 12 files\n", marks=pytest.mark.long),
        (mpi, 5, ""),
    ],
)
def test_recorded_then_placed(
    loop: Loop, tmp_path: Path, program: Callable[[Path, Path], list[object]], files: int, output: str
) -> None:
    app = program.__name__
    for run in (1, 2):
        folder = loop.mount() / app
        folder.mkdir()
        assert loop.run(*program(folder, tmp_path), app=app).stdout == output
        written = sorted(p.name for p in folder.iterdir())
        assert len(written) == files, written
        if run == 1:
            assert loop.outcomes(app) == {"unmanaged": files}
            loop.clear()
    assert loop.outcomes(app) == {"hit": files}
    assert placed_as_planned(loop, app) == files


HACC = """#!{python}
import os, sys
rank, ranks = (int(os.environ["OMPI_COMM_WORLD_" + name]) for name in ("RANK", "SIZE"))
with open(f"{{sys.argv[2]}}-Part{{rank:08}}-of-{{ranks:08}}.data", "wb") as file:
    file.truncate((24 << 20) + 38 * int(sys.argv[1]))
"""


def test_a_first_run_is_placed_by_what_darshan_logs_taught(loop: Loop, tmp_path: Path) -> None:
    """Four real logs of HACC-IO; then the fifth run, under tarazu for the first time."""
    if not shutil.which(OPENMPI_RUN):
        pytest.skip(f"{OPENMPI_RUN} is not installed (Debian: openmpi-bin)")
    loop.clear()
    logs = Path(__file__).parents[1] / "data" / "traces"
    words = ["--mount", "/scratch/run", "--fs", "lustre", "--any-user"]
    done = loop.tarazu("history", "import", *sorted(logs.glob("series_haccfpp_[0-3]*")), *words)
    assert done.returncode == 0 and "4 imported" in done.stdout, done
    program = tmp_path / "hacc_io_fpp_posix"
    program.write_text(HACC.format(python=sys.executable))
    program.chmod(0o755)
    options = ["--allow-run-as-root", "--oversubscribe", "-np", "8"]
    command = [OPENMPI_RUN, *options, program, "140000", loop.mount() / "haccfpp"]
    done = loop.tarazu("run", "--mode", "place", "--", *command)
    assert (done.returncode, done.stderr) == (0, ""), (done, loop.log())
    assert loop.outcomes("hacc_io_fpp_posix") == {"hit": 8}
    rows = loop.rows("hacc_io_fpp_posix")
    assert [row["found"] for row in rows] == ["exact"] * 8
    assert {row["forecast"]["size_bytes"] for row in rows} == {row["actual_bytes"] for row in rows}
    assert placed_as_planned(loop, "hacc_io_fpp_posix") == 8
    again = loop.tarazu("history", "import", logs / "series_haccfpp_0_p100k.darshan", *words)
    assert again.stdout == "1 there already\n"
    shown = loop.json("history", "show", "hacc_io_fpp_posix")
    assert shown["outcomes"] == {"hit": 8} and shown["ost_cost"] >= 1 and len(shown["groups"]) == 1
    assert sum(shown["ost_bytes"].values()) == sum(row["actual_bytes"] for row in rows)


def test_files_whose_names_are_no_utf8_are_placed_beside_others(loop: Loop) -> None:
    """Latin-1 and raw bytes, in directories and the application's too: such a name could not be told to the leader."""
    app = "odd\udcfc"
    names = [
        b"gr\xf6\xdfe/teil.0",
        b"gr\xf6\xdfe/teil.1",
        b'//\xff,\xfe"\n.%d',
        "größe.0".encode(),
        b"plain.0",
    ]
    script = (
        f"import os, sys\nfor name in {names}:\n    path = os.fsencode(sys.argv[1]) + b'/' + name\n"
        "    os.makedirs(os.path.dirname(path), exist_ok=True)\n    open(path, 'wb').write(bytes(2 << 20))\n"
    )
    for _ in (1, 2):
        loop.clear()
        loop.run(sys.executable, "-c", script, loop.mount() / "odd", app=app)
    assert loop.outcomes(app) == {"hit": len(names)}
    assert {row["found"] for row in loop.rows(app)} == {"exact"}
    assert placed_as_planned(loop, app) == len(names)
    odd = loop.mount() / "odd" / "gr\udcf6\udcdfe" / "teil.0"
    for words in (
        ("job", "explain", odd),
        ("history", "predict", app),
        ("history", "db", "show", "--app", app),
        ("history", "show", app),
    ):
        shown = loop.tarazu(*words, text=False, env={"PYTHONIOENCODING": "utf-8:strict"})
        assert shown.returncode == 0 and b"/odd/gr\xf6\xdfe/teil." in shown.stdout, shown
    assert b" app=odd\xfc mode=place" in (loop.home / "jobs.log").read_bytes()


@pytest.mark.parametrize("status", [0, 5, 255])
def test_the_exit_status_is_the_programs(loop: Loop, status: int) -> None:
    done = loop.tarazu("run", "--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (done.returncode, done.stdout, done.stderr) == (status, "out\n", "err\n")


def test_a_step_inside_a_step_only_runs(loop: Loop) -> None:
    before = len(loop.json("history", "list"))
    env = {"OMPI_COMM_WORLD_RANK": "1"}
    done = loop.tarazu("run", "--app", "inner", "--", "sh", "-c", "echo ${TARAZU_STEP:-none}", env=env)
    assert (done.returncode, done.stdout) == (0, "none\n")
    assert len(loop.json("history", "list")) == before


def test_the_kill_switch(loop: Loop) -> None:
    done = loop.tarazu("run", "--", "sh", "-c", "echo ${LD_PRELOAD}", env={"TARAZU_DISABLE": "1"})
    assert "libtarazu" not in done.stdout


def test_observe_records_and_advise_notes_without_placing(loop: Loop) -> None:
    words = ["dd", "if=/dev/zero", f"of={loop.mount()}/advised", "bs=1M", "count=8", "status=none"]
    loop.run(*words, app="advised", mode="observe")
    loop.clear()
    loop.run(*words, app="advised", mode="advise")
    assert loop.outcomes("advised") == {"advised": 1}
    assert len(loop.testbed.layout("advised").osts[0]) == 1
    assert len(loop.rows("advised")[0]["placement"]["osts"][0]) == 8
