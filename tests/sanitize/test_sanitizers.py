"""A short part of `make sanitize`, and the program with children that share its memory without any sanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tarazu import built
from tarazu.trace import spool
from tests.sanitize import build
from tests.sanitize.__main__ import run_valgrind

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "preload" / "programs"


def run(
    source: Path, directory: Path, preload: str, *options: str, wrap: tuple[str, ...] = (), **extra: str
) -> list[spool.Spool]:
    """Compiles and runs a program below a mount, behind the command `wrap`; the spools that it leaves."""
    mount, program = directory / "mnt", directory / "program"
    mount.mkdir()
    subprocess.run(["cc", "-g", "-O1", "-pthread", *options, str(source), "-o", str(program)], check=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TARAZU_", "LD_PRELOAD"))}
    ours = {
        "LD_PRELOAD": preload,
        "TARAZU_MOUNTS": f"{mount}=lustre",
        "TARAZU_SPOOL": str(directory / "spool"),
        "TARAZU_RECORD": "full",
    }
    done = subprocess.run(
        [*wrap, program],
        cwd=mount,
        env={**clean, **ours, **extra},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [s for p in (directory / "spool").iterdir() for s in spool.read_spools(p)]


def check_sharing(spools: list[spool.Spool]) -> None:
    """What children in the same memory did is not recorded, and changed nothing of what the parent counts."""
    (parent,) = [s for s in spools if any(c.key == "/run0" for c in s.creates)]
    (forked,) = [s for s in spools if any(c.key == "/run3" for c in s.creates)]  # noted on the node
    numbers = [(c.key, c.nth_loose) for c in parent.creates if c.loose == "/run#"]
    assert numbers == [("/run0", 0), ("/run1", 1), ("/run2", 2), ("/run4", 3)]
    assert [(c.key, c.nth_loose) for c in forked.creates] == [("/run3", 0)]
    (kept,) = [c for c in parent.closes if c.key == "/kept"]
    assert (kept.size_bytes, kept.written_bytes, kept.writes) == (5, 5, 1)
    (shared,) = [c for c in parent.closes if c.key == "/shared"]
    assert shared.writes == 8 * 30 * 2
    for i in range(30):
        same = [c.nth_precise for c in parent.creates if c.key == f"/same.{i}"]
        assert same == [0]  # one record, whichever thread made it
        own = [c.nth_loose for c in parent.creates if c.key.startswith(f"/directory{i}/")]
        assert len(own) == 8
    loose = [c.nth_loose for c in parent.creates if c.loose == "/directory#/own.#"]
    assert sorted(loose) == list(range(240))


def test_children_in_the_same_memory(tmp_path: Path) -> None:
    library = str(built.library_path("libtarazu.so"))
    check_sharing(run(HERE / "programs" / "sharing.c", tmp_path, library, "-DCLONES_RUN_ON"))


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build.library("address", tmp_path_factory.mktemp("address"))


@pytest.mark.parametrize("program", ["sharing", "many", "spawn"])
def test_addresses_and_undefined_behaviour(program: str, instrumented: str, tmp_path: Path) -> None:
    source = HERE / "programs" / "sharing.c" if program == "sharing" else PROGRAMS / f"{program}.c"
    spools = run(source, tmp_path, instrumented, **build.environment("address"))
    assert list(Path(instrumented.rsplit(maxsplit=1)[-1]).parent.glob("found.*")) == []
    assert sum(len(s.creates) for s in spools) > 0
    if program == "sharing":
        check_sharing(spools)


@pytest.mark.parametrize("program", ["replaced", "many"])
def test_no_two_threads_at_one_place(program: str, tmp_path: Path) -> None:
    (tmp_path / "thread").mkdir()
    preload = build.library("thread", tmp_path / "thread")
    # The runtime cannot place its shadows where addresses are randomised much.
    spools = run(
        PROGRAMS / f"{program}.c", tmp_path, preload, wrap=("setarch", "-R"), **build.environment("thread")
    )
    assert build.findings(tmp_path / "thread") == ""
    assert sum(len(s.creates) for s in spools) > 0


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind (Debian: valgrind)")
@pytest.mark.parametrize("program", ["sharing", "many"])
def test_memcheck(program: str, tmp_path: Path) -> None:
    source = HERE / "programs" / "sharing.c" if program == "sharing" else PROGRAMS / f"{program}.c"
    done = run_valgrind(source, tmp_path)
    assert done.returncode == 0, done.stderr


def test_numbers_of_many_names(tmp_path: Path, instrumented: str) -> None:
    """More names than the first levels of the table hold; each keeps its number when it is created again."""
    source = tmp_path / "names.c"
    source.write_text(
        """
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void) {
            char name[32];
            for (int again = 0; again < 2; again++)
                for (int i = 0; i < 20000; i++) {
                    snprintf(name, sizeof name, "f%d", i * 7 % 20000);
                    if (again && i % 1000)
                        continue;
                    int fd = open(name, O_CREAT | O_WRONLY, 0600);
                    if (fd < 0 || close(fd) || unlink(name))
                        return 1;
                }
            return 0;
        }
        """
    )
    (recorded,) = run(source, tmp_path, instrumented, **build.environment("address"))
    creates = recorded.creates
    assert [c.nth_loose for c in creates] == list(range(20000))
    assert [c.nth_loose for c in creates if c.again] == list(range(0, 20000, 1000))
    assert {c.nth_precise for c in creates} == {0}
