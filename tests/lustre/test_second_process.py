"""A second process opens files by name while the first is making them: no write of either may fail or be lost.

A file that is open for writing and has no layout lends that handle to each process of the same client that opens it for
writing, and there the first write fails with EBADF, whatever library it has or has not. $TARAZU_LUSTRE_FILES files each
(200). $TARAZU_LUSTRE_OTHER, a command such as `ssh client2`, runs the second process on another node.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.lustre
LustreMount = Any

PROCESSES = 12
FILES = int(os.environ.get("TARAZU_LUSTRE_FILES", "200"))
OTHER = shlex.split(os.environ.get("TARAZU_LUSTRE_OTHER", ""))
PLACES = (0, 9 << 20, 2 << 20)
"""Where each process writes: the second one in the last component, the third in the middle."""

COMMON = """
import os, sys, time
count, who, when = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
places, failed = [int(p) for p in sys.argv[4].split(",")], []
def put(i, fd):
    try:
        assert os.pwrite(fd, bytes([97 + who]) * 1000, places[who]) == 1000
    except OSError as error:
        failed.append((i, error.errno))
    os.close(fd)
def get(i, flags):
    while True:
        try:
            return os.open(f"shared.{i}", flags, 0o644)
        except FileNotFoundError:
            pass
while time.time() < when: pass
"""
MAKER = (
    COMMON
    + """
for i in range(count):
    put(i, os.open(f"shared.{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
print(failed)
"""
)
CREATOR = MAKER.replace(" | os.O_EXCL", "")
POLLER = (
    COMMON
    + """
for i in range(count): put(i, get(i, os.O_RDWR))
print(failed)
"""
)
LOSER = (
    COMMON
    + """
for i in range(count):
    try:
        fd = os.open(f"shared.{i}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    except FileExistsError:
        fd = get(i, os.O_RDWR)
    put(i, fd)
print(failed)
"""
)
READER = (
    COMMON
    + """
for i in range(count):
    fd = get(i, os.O_RDONLY)
    end = time.time() + 60
    while os.pread(fd, 1000, places[0]) != b"a" * 1000 and time.time() < end: pass
    if time.time() >= end: failed.append((i, "nothing to read"))
    os.close(fd)
print(failed)
"""
)
TOGETHER = {
    "a-poller": (MAKER, POLLER),
    "a-reader": (MAKER, READER),
    "creators": (CREATOR, CREATOR, CREATOR),
    "losers": (LOSER, LOSER, LOSER),
}


def rows(lustre: LustreMount, composite: bool, shared: bool) -> None:
    layout, osts = lustre.three()
    names = [f"shared.{i}" for i in range(FILES)]
    if composite:
        lustre.map(*(lustre.row(name, *osts, layout=layout, shared=shared) for name in names))
    else:
        lustre.map(*(lustre.row(name, lustre.some(3), shared=shared) for name in names))


def holds(path: Path, places: dict[int, int]) -> bool:
    """Is there what each process wrote at its place, and nothing behind it? Not all of the holes is read: that is
    gigabytes.
    """
    with path.open("rb") as f:
        parts = {who: os.pread(f.fileno(), 65536, at) for who, at in places.items()}
        size = os.fstat(f.fileno()).st_size
    return size == max(places.values()) + 1000 and all(
        part == (bytes([97 + who]) * 1000).ljust(min(65536, size - places[who]), b"\0")
        for who, part in parts.items()
    )


def together(lustre: LustreMount, how: str, start_second: Any, **extra: str) -> tuple[list[str], list[int]]:
    """(what each process prints: its failed writes; which files do not hold what all have written)."""
    shutil.rmtree(lustre.spools, ignore_errors=True)
    when = str(time.time() + float(os.environ.get("TARAZU_LUSTRE_START_S", "2")))
    words = [
        [lustre.interpreter, "-c", source, str(FILES), str(who), when, ",".join(map(str, PLACES))]
        for who, source in enumerate(TOGETHER[how])
    ]
    running = [start_second(argv, **extra) for argv in words[1:]] + [lustre.start(words[0], **extra)]
    said = []
    for process in running:
        with process:
            output, errors = process.communicate(timeout=900)
        assert (process.returncode, errors) == (0, "")
        said.append(output.strip())
    writers = [(who, PLACES[who]) for who, source in enumerate(TOGETHER[how]) if source is not READER]
    return said, [i for i in range(FILES) if not holds(lustre.directory / f"shared.{i}", dict(writers))]


def check(lustre: LustreMount, said: list[str], damaged: list[int]) -> None:
    assert set(said) == {"[]"} and damaged == []


@pytest.mark.parametrize("second", ["place", "observe", "without"])
@pytest.mark.parametrize("composite", [False, True], ids=["plain", "progressive"])
@pytest.mark.parametrize("how", list(TOGETHER))
def test_a_second_process_of_the_node(lustre: LustreMount, how: str, composite: bool, second: str) -> None:
    """Under the library, placing or only observing, and without it."""
    rows(lustre, composite, shared=False)

    def start(argv: list[str], **extra: str) -> subprocess.Popen[str]:
        if second == "without":
            return lustre.start(argv, preload=False, **extra)
        return lustre.start(argv, **{**extra, "TARAZU_MODE": second})

    check(lustre, *together(lustre, how, start))


@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("composite", [False, True], ids=["plain", "progressive"])
def test_many_processes_open_new_files_at_the_same_moment(
    lustre: LustreMount, composite: bool, apply: str
) -> None:
    """All files have the planned layout, and all that was written."""
    if OTHER and lustre.user:
        pytest.skip("the command runs as whoever runs the tests")
    rows(lustre, composite, shared=True)
    when = str(time.time() + float(os.environ.get("TARAZU_LUSTRE_START_S", "2")))
    places = [i << 20 for i in range(PROCESSES)]
    words = [
        [lustre.interpreter, "-c", CREATOR, str(FILES), str(who), when, ",".join(map(str, places))]
        for who in range(PROCESSES)
    ]
    with elsewhere(lustre, preload=True) as there:
        running = [
            (there if there and who % 2 else lustre.start)(argv, TARAZU_APPLY=apply)
            for who, argv in enumerate(words)
        ]
        for process in running:
            with process:
                assert process.communicate(timeout=900) == ("[]\n", "")
    wanted = [tuple(osts) for osts in lustre.three()[1]] if composite else [lustre.some(3)]
    for i in range(FILES):
        assert lustre.layout_of(f"shared.{i}") == wanted, i
        assert holds(lustre.directory / f"shared.{i}", dict(enumerate(places))), i


@contextmanager
def elsewhere(lustre: LustreMount, preload: bool) -> Iterator[Any]:
    """Starts a process on the other node, in the same directory and with the same map; None: there is no other."""
    if not OTHER:
        yield None
        return
    there = lustre.directory / "of-the-other-node"
    shutil.copytree(lustre.map_directory, there / "maps")
    library = shutil.copy(lustre.library, there)

    def start(argv: list[str], **extra: str) -> subprocess.Popen[str]:
        settings = {
            "TARAZU_MODE": "place",
            "TARAZU_MAP": str(there / "maps"),
            "TARAZU_SPOOL": f"/tmp/{lustre.directory.name}-other",
            "LD_PRELOAD": f"{library if preload else ''} {os.environ.get('LD_PRELOAD', '')}".strip(),
            **extra,
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        remote = shlex.join(["env", "-C", str(lustre.directory), *words, *argv])
        return subprocess.Popen(
            [*OTHER, remote], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    try:
        yield start
    finally:
        shutil.rmtree(there)


@pytest.mark.skipif(not OTHER, reason="TARAZU_LUSTRE_OTHER names no command that runs on another node")
@pytest.mark.parametrize("preload", [False, True], ids=["without", "with"])
@pytest.mark.parametrize("shared", [False, True], ids=["unknown", "shared"])
@pytest.mark.parametrize("composite", [False, True], ids=["plain", "progressive"])
@pytest.mark.parametrize("how", list(TOGETHER))
def test_a_second_process_on_another_node(
    lustre: LustreMount, how: str, composite: bool, shared: bool, preload: bool
) -> None:
    if lustre.user:
        pytest.skip("the command runs as whoever runs the tests")
    rows(lustre, composite, shared)
    with elsewhere(lustre, preload) as start:
        check(lustre, *together(lustre, how, start))
