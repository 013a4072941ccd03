"""Every wrapped function, at every error of a file system that fails as it is asked to: what a program can see of it
is the same with the library and without, in every mode.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tarazu.sim.testbed import down, up
from tests.preload.conftest import Placed

SOURCES = Path(__file__).parent / "programs"
PRELOAD = Path(__file__).parents[2] / "preload"

PARTS = (
    "open64.wide fopen64.wide fopen64.large fopen64.unbuffered freopen.second dup2.other sub/chdir exit"
).split()
LIKELY = {
    "create": "EACCES ENOSPC EROFS EDQUOT",
    "open": "EACCES ENOENT ESTALE",
    "write": "EINTR EIO EFBIG ENOSPC EDQUOT",
    "write:2": "ENOSPC",
    "flush": "EIO ENOSPC EDQUOT",
    "fsync": "EIO",
    "getattr": "EIO",
    "read": "EIO",
}
ALL = [n for number, n in sorted(errno.errorcode.items()) if number < 134 and n not in ("ENOSYS", "EEXIST")]
"""ENOSYS tells the kernel that a file system lacks the operation, and it asks no more; at EEXIST mkstemp tries 238,328
names."""
RETRIED = ("ECHILD", "ESTALE")
"""The kernel does not believe these of a file's attributes and opens anew, where the file then exists."""


def functions() -> list[str]:
    return re.findall(r"^TZ_WRAP\([^,]+, (\w+),", (PRELOAD / "wrap.def").read_text(), re.M)


def asked(errors: Mapping[str, Iterable[str]]) -> list[str]:
    """Directories that ask for these errors, by operation, and one that asks for none."""
    return ["none"] + [
        f"{operation.split(':')[0]}={getattr(errno, name)}" + (":2" if ":" in operation else "")
        for operation, names in errors.items()
        for name in names
    ]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    """A testbed whose mount is the failing file system."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse, and root")
    work = tmp_path_factory.mktemp("failing")
    program = work / "faulty"
    flags = ["-I/usr/include/fuse3", "-lfuse3"]
    subprocess.run(["cc", "-O1", SOURCES / "faulty.c", "-o", program, *flags], check=True)
    bed = up(work / "tb", osss=4, osts_per_oss=2, clients=1, interval_s=60, sparse=False)
    (work / "backing").mkdir()
    mounted = subprocess.Popen([program, work / "backing", bed.mount, "-f"])
    try:
        while not os.path.ismount(bed.mount):
            assert mounted.poll() is None, "the failing file system did not start"
            time.sleep(0.01)
        yield Placed(bed, work)
        assert bed.crashed() is None
    finally:
        subprocess.run(["umount", "-l", bed.mount], check=True)
        mounted.terminate()  # a mount namespace that somebody has made meanwhile may hold it for long
        mounted.wait(300)
        down(bed.directory)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("visible") / "visible"
    subprocess.run(["cc", "-O1", "-g", f"-I{PRELOAD}", *SOURCES.glob("visible*.c"), "-o", out], check=True)
    return out


def seen(failing: Placed, program: Path, asks: Sequence[str], preload: bool, **extra: str) -> str:
    for old in failing.mount.iterdir():
        shutil.rmtree(old)
    for name in asks:
        (failing.mount / name).mkdir()
    shutil.rmtree(failing.spool_directory, ignore_errors=True)
    behind = failing.environ(**extra)
    done = subprocess.run(
        [program, *asks], env=behind if preload else behind | {"LD_PRELOAD": failing.behind},
        cwd=failing.mount, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(failing: Placed, asks: Sequence[str], parts: bool) -> None:
    names = [f"/{ask}/{name}" for ask in asks for name in (*functions(), *PARTS)]
    if parts:
        layout = failing.three_parts
        made = [failing.row(n, *failing.three_lists, layout=layout, row_id=i) for i, n in enumerate(names)]
    else:
        made = [failing.row(n, (i % 8,), row_id=i) for i, n in enumerate(names)]
    failing.map(*made)


MODES: dict[str, dict[str, str]] = {
    "observe": {"TARAZU_MODE": "observe"},
    "observe-full": {"TARAZU_MODE": "observe", "TARAZU_RECORD": "full"},
    "place-plain": {},
    "place-parts": {"TARAZU_RECORD": "full"},
    "place-llapi": {"TARAZU_APPLY": "llapi"},
}


def compare(failing: Placed, program: Path, mode: str, errors: Mapping[str, Iterable[str]]) -> None:
    asks = asked(errors)
    if mode.startswith("place"):
        # The kernel asks for attributes within some opens only, and a placed file is made first, and then opened.
        asks = [ask for ask in asks if not ask.startswith(("getattr", "open"))]
        rows(failing, asks, parts=mode == "place-parts")
    bare = seen(failing, program, asks, preload=False, **MODES[mode])
    ours = seen(failing, program, asks, preload=True, **MODES[mode])
    different = [
        f"{mine!r} instead of {its!r}"
        for its, mine in zip(bare.splitlines(), ours.splitlines())
        if its != mine
    ]
    assert (different, len(ours)) == ([], len(bare))


@pytest.mark.parametrize("mode", MODES)
def test_a_program_sees_the_same_at_likely_errors(failing: Placed, program: Path, mode: str) -> None:
    """Among them what fclose says of data that could not be written."""
    compare(failing, program, mode, {operation: names.split() for operation, names in LIKELY.items()})


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", range(8))
def test_a_program_sees_the_same_at_every_error(failing: Placed, program: Path, mode: str, part: int) -> None:
    errors = dict.fromkeys(LIKELY, ALL[part::8]) | {"getattr": [n for n in ALL[part::8] if n not in RETRIED]}
    compare(failing, program, mode, errors)


def test_what_fails_in_calls_of_the_library_alone_is_not_seen(failing: Placed, program: Path) -> None:
    """A program that creates and writes calls no fallocate: the library does, for late components."""
    asks = asked({"fallocate": ("EPERM", "EIO", "ENOSPC", "EOPNOTSUPP", "ESTALE")})
    rows(failing, asks, parts=True)
    bare, ours = (seen(failing, program, asks, preload) for preload in (False, True))
    assert ours == bare


@pytest.mark.parametrize("error", ["EACCES", "EIO", "ESTALE"])
def test_a_placed_file_that_cannot_be_opened_again_stays(failing: Placed, program: Path, error: str) -> None:
    """Another may have written to it by then: the error is told, and the file is there for the next open."""
    ask = f"open={getattr(errno, error)}"
    seen(failing, program, [ask], preload=False)  # it is empty but for that directory
    shutil.rmtree(failing.mount / ask)
    (failing.mount / ask).mkdir()
    failing.map(failing.row(f"/{ask}/f", (3, 1)))
    source = (
        f"import os\ntry: os.open('{ask}/f', os.O_CREAT | os.O_WRONLY)\nexcept OSError as e: print(e.errno)"
    )
    done = failing.python(source)
    assert (done.stdout, done.stderr) == (f"{getattr(errno, error)}\n", "")
    assert os.listdir(failing.mount / ask) == ["f"] and (failing.mount / ask / "f").stat().st_size == 0


def test_each_wrapped_function_is_called() -> None:
    text = "".join(source.read_text() for source in SOURCES.glob("visible_*.c"))
    missing = [n for n in functions() if f"{n}_(void)" not in text and f"({n}," not in text]
    assert missing == [] and len(functions()) > 50
