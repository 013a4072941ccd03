"""How the library's files stand to one another: who calls whom, and that a file's name says what it gives."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PRELOAD = Path(__file__).parent.parent.parent / "preload"
FLOORS = ("", "base", "core", "process", "names", "place", "record", "life", "hooks")
"""Folders from the ground up; "" holds tz.h, lustre.h and the table of wrapped symbols."""
DECLARED_BY_LIBC = {
    f"hooks/{name}" for name in ("fd", "loader", "open", "process", "stdio", "vfork", "write")
}
FILES = sorted(p.relative_to(PRELOAD) for p in PRELOAD.rglob("*.[ch]"))
SOURCES = [p for p in FILES if p.suffix == ".c"]


def room(path: Path) -> str:
    """A source and its header are one: base/lock.c and base/lock.h are base/lock."""
    return str(path.with_suffix(""))


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, tuple[set[str], set[str]]]:
    """Source → (names that its object defines for others, names that it takes from others)."""
    directory = tmp_path_factory.mktemp("objects")

    def of(source: Path) -> tuple[set[str], set[str]]:
        out = directory / f"{str(source).replace('/', '.')}.o"
        command = ["cc", "-c", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{PRELOAD}"]
        command.append("-Wframe-larger-than=1024")  # a signal handler has a small stack
        done = subprocess.run(
            [*command, str(PRELOAD / source), "-o", str(out)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        listed = subprocess.run(["nm", str(out)], capture_output=True, text=True, check=True).stdout
        entries = [line.split()[-2:] for line in listed.splitlines()]
        return {n for kind, n in entries if kind in "TDBRV"}, {n for kind, n in entries if kind == "U"}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(SOURCES, pool.map(of, SOURCES), strict=True))


def included(path: Path) -> Iterator[Path]:
    for name in re.findall(r'#include "([^"]+\.h)"', (PRELOAD / path).read_text()):
        yield Path(name)


def test_no_circle_among_the_files(symbols: dict[Path, tuple[set[str], set[str]]]) -> None:
    """The one call upward is a pointer that state.c is given: a copy of the process is noticed below all others."""
    home = {name: room(path) for path, (defined, _) in symbols.items() for name in defined}
    uses: dict[str, set[str]] = {room(path): set() for path in FILES}
    for path in FILES:
        uses[room(path)] |= {room(other) for other in included(path)} - {room(path)}
    for path, (_, taken) in symbols.items():
        uses[room(path)] |= {home[n] for n in taken if n.startswith("tz_") and n in home} - {room(path)}
    assert uses["life/start"] >= {"life/fork", "life/exit", "record/recorder"}, "calls are seen"
    while free := {name for name, below in uses.items() if not below}:
        uses = {name: below - free for name, below in uses.items() if name not in free}
    assert not uses, f"a circle, or above one: {sorted(uses)}"


def test_a_file_uses_only_the_folders_below_its_own() -> None:
    for path in FILES:
        floor = FLOORS.index(str(path.parent).strip("."))
        above = [str(o) for o in included(path) if FLOORS.index(str(o.parent).strip(".")) > floor]
        assert not above, f"{path} includes {above}"


def test_a_file_opens_with_what_it_is_for() -> None:
    for path in FILES:
        comment = re.match(r"/\*(.*?)\*/", (PRELOAD / path).read_text(), re.S)
        assert comment and len(comment[1].split()) >= 3, path


def test_a_header_declares_what_its_source_defines(symbols: dict[Path, tuple[set[str], set[str]]]) -> None:
    """And every source has one, but for those that wrap what libc's headers declare."""
    for path, (defined, _) in symbols.items():
        header = PRELOAD / f"{room(path)}.h"
        if room(path) not in DECLARED_BY_LIBC:
            assert header.exists(), path
            text = header.read_text()
            missing = {n for n in defined if n.startswith("tz_") and not re.search(rf"\b{n}\b", text)}
            assert not missing, f"{path} defines what {header.name} does not declare"
    for path in FILES:
        prototypes = re.findall(r"^(?!static|typedef)\w[\w \*]*?\b(tz_\w+)\([^;{]*\);", text_of(path), re.M)
        prototypes += re.findall(r"^extern [^;(]*?\b(tz_\w+)[;\[]", text_of(path), re.M)
        here = {n for p, (defined, _) in symbols.items() if room(p) == room(path) for n in defined}
        assert not set(prototypes) - here, f"{path} declares what other files define"


def text_of(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", (PRELOAD / path).read_text(), flags=re.S)
