"""Off means off: a stop that running processes obey, and only when it is root's or their own job's."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tarazu.store import control
from tarazu.store.stop import resume_site, site_stop, stop_site
from tests.waiting import until

Placed = Any
OSTS = (3, 1, 5)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's stop file counts")

STEADY = """
import itertools, time
for n in itertools.count():
    open(f's.{n}', 'w').close()
    time.sleep(0.1)
"""


@pytest.fixture
def stop_file(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir(mode=0o755)
    return tmp_path / "etc" / "stop"


@contextmanager
def steady(placed: Placed, **extra: str) -> Iterator[Callable[[bool], None]]:
    """A program that makes a file every 0.1 s; what is given waits until files are (not) placed."""
    placed.map(*(placed.row(f"/s.{n}", OSTS) for n in range(2000)))
    with subprocess.Popen(
        [sys.executable, "-c", STEADY], env=placed.environ(**extra), cwd=placed.mount, stderr=subprocess.PIPE
    ) as program:

        def newest_is(placed_now: bool) -> bool:
            assert program.poll() is None
            newest = max((int(p.suffix[1:]) for p in placed.mount.glob("s.*")), default=0) - 1
            return newest >= 0 and (placed.osts(f"s.{newest}") == [list(OSTS)]) == placed_now

        def wait_until(placed_now: bool) -> None:
            until(lambda: newest_is(placed_now))

        try:
            yield wait_until
        finally:
            program.terminate()
            assert program.stderr is not None and program.stderr.read() == b""


@as_root
def test_a_running_program_obeys_the_sites_stop_and_its_end(placed: Placed, stop_file: Path) -> None:
    with steady(placed, TARAZU_STOP=str(stop_file)) as wait_until:
        wait_until(True)
        for _ in range(2):
            stop_site(str(stop_file), "disks are being replaced")
            wait_until(False)
            resume_site(str(stop_file))
            wait_until(True)


def test_a_running_program_obeys_its_jobs_stop_and_its_end(placed: Placed) -> None:
    with steady(placed) as wait_until:
        wait_until(True)
        for stop, end in (
            (control.stop, control.resume),
            (lambda d: control.set_site_stop(d, ""), lambda d: control.set_site_stop(d, None)),
        ):
            stop(placed.map_directory)
            wait_until(False)
            end(placed.map_directory)
            wait_until(True)


def an_ordinary_users_file(path: Path) -> None:
    path.touch()
    os.chown(path, 12345, 12345)


def a_file_that_others_may_write(path: Path) -> None:
    path.touch()
    path.chmod(0o666)


def a_link_to_roots_file(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def a_second_name_of_roots_file(path: Path) -> None:
    (path.parent / "other").touch()
    path.hardlink_to(path.parent / "other")


def a_directory_that_others_may_write(path: Path) -> None:
    path.touch()
    path.parent.chmod(0o1777)


def a_users_directory(path: Path) -> None:
    path.touch()
    os.chown(path.parent, 12345, 12345)


def a_directory(path: Path) -> None:
    path.mkdir()


@as_root
@pytest.mark.parametrize(
    "trick",
    [
        an_ordinary_users_file,
        a_file_that_others_may_write,
        a_link_to_roots_file,
        a_second_name_of_roots_file,
        a_directory_that_others_may_write,
        a_users_directory,
        a_directory,
    ],
)
def test_what_an_ordinary_user_can_make_stops_nobody(
    placed: Placed, stop_file: Path, trick: Callable[[Path], None]
) -> None:
    placed.map(placed.row("/f", OSTS))
    trick(stop_file)
    assert site_stop(str(stop_file)) is None
    assert placed(["touch", "f"], TARAZU_STOP=str(stop_file)).returncode == 0
    assert placed.osts("f") == [list(OSTS)]


@as_root
@pytest.mark.parametrize("way", ["link/stop", "etc/../etc/stop", "/etc/stop", "./etc/stop"])
def test_a_path_through_a_link_is_left_to_the_leader(placed: Placed, stop_file: Path, way: str) -> None:
    """It may lead to a server that hangs: the library does not follow it, the leader does, and tells the job."""
    stop_site(str(stop_file))
    (stop_file.parent.parent / "link").symlink_to(stop_file.parent)
    placed.map(placed.row("/f", OSTS))
    assert placed(["touch", "f"], TARAZU_STOP=f"{stop_file.parent.parent}/{way}").returncode == 0
    assert placed.osts("f") == [list(OSTS)]


@as_root
def test_a_site_stop_of_a_root_with_a_narrow_umask_is_seen_by_users_jobs(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = Path(stop_site(str(tmp_path / "etc" / "tarazu" / "stop"), "why").path)
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent, path.parent.parent)] == [
        0o644,
        0o755,
        0o755,
    ]


@pytest.mark.parametrize("mode", ["observe", "advise", "place"])
def test_a_stop_holds_for_recording_too_and_the_gap_is_counted(placed: Placed, mode: str) -> None:
    placed.map(placed.row("/f.2", OSTS))
    source = """
import sys
from tarazu.store import control
for n in range(3):
    control.stop(sys.argv[1], 'enough') if n == 1 else control.resume(sys.argv[1])
    open(f'f.{n}', 'w').write('x')
"""
    done = placed.python(source, str(placed.map_directory), TARAZU_MODE=mode)
    assert (done.returncode, done.stderr) == (0, "")
    assert [c.key for c in placed.creates] == ["/f.0", "/f.2"] == [c.key for c in placed.closes]
    assert [c.nth_loose for c in placed.creates] == [0, 2], "names are counted on"
    (node,) = placed.spool_directory.glob("**/*.node.tzs")
    assert struct.unpack_from("<Q", node.read_bytes(), 208) == (1,)


def test_a_stopped_process_leaves_nothing_behind(placed: Placed) -> None:
    control.stop(placed.map_directory)
    assert placed(["touch", "f"]).returncode == 0
    assert not placed.spool_directory.exists()


@as_root
def test_a_stop_file_that_would_not_count_is_refused_when_it_is_made(tmp_path: Path) -> None:
    from tarazu.errors import BadInput

    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(BadInput, match="only root can change"):
        stop_site(str(tmp_path / "open" / "stop"))
    assert not list((tmp_path / "open").iterdir())
    with pytest.raises(BadInput, match="no stop file"):
        stop_site("")
    made = stop_site(str(tmp_path / "new" / "stop"), " two\nlines ")
    assert str(made) == f"stopped by {tmp_path}/new/stop: two lines"
    assert resume_site(made.path) and not resume_site(made.path)


LOOKUP = """
import ctypes, sys
class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p)] + [(n, ctypes.c_void_p) for n in ("base", "name", "at")]
program = ctypes.CDLL(None)
for name in ("close_range", "closefrom", "open"):
    info = Info()
    found = getattr(program, name, None)
    if found is not None:
        program.dladdr(ctypes.cast(found, ctypes.c_void_p), ctypes.byref(info))
    print(name, (info.file or b"none").decode().rpartition("/")[2])
"""


def test_a_program_that_looks_for_close_range_finds_libcs_or_none(placed: Placed) -> None:
    """Where libc has none the library has none either: a program takes its other way, as it would have."""
    plain = placed.bare([sys.executable, "-c", LOOKUP]).stdout.split()
    with_library = placed([sys.executable, "-c", LOOKUP]).stdout.split()
    assert with_library[:4] == plain[:4] and "libtarazu.so" not in with_library[:4]
    assert with_library[4:] == ["open", "libtarazu.so"]


def test_a_program_that_is_linked_to_close_range_is_followed(placed: Placed) -> None:
    """Python's os.closerange is."""
    source = (
        "import os; f = os.open('f', os.O_CREAT | os.O_WRONLY); os.write(f, b'abc'); os.closerange(f, f + 3)"
    )
    assert placed.python(source + "; os.kill(os.getpid(), 9)").returncode == -9
    assert placed.close("/f").size == 3
