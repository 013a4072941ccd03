"""Every libc function that creates files is seen, however the path is said, at the cost that is promised."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tarazu.store.control import write_control

Runs = Any
Placed = Any
HIT, SKIPPED = 1, 6
BY_NAME = "open open64 openat openat64 creat creat64 fopen fopen64 freopen freopen64".split()
BY_TEMPLATE = "mkstemp mkstemp64 mkostemp mkostemp64 mkstemps mkstemps64 mkostemps mkostemps64".split()


@pytest.mark.parametrize("fortified", [False, True])
@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_every_function_that_creates(placed: Placed, compiled: Any, apply: str, fortified: bool) -> None:
    placed.map(*(placed.row(f"/{name}", (i % 8, (i + 3) % 8)) for i, name in enumerate(BY_NAME)))
    program = compiled("every.c", *(["-O2", "-D_FORTIFY_SOURCE=2"] if fortified else []))
    done = placed([program], TARAZU_APPLY=apply, TARAZU_RECORD="full")
    assert (done.returncode, done.stderr) == (0, "")
    for i, name in enumerate(BY_NAME):
        again = name in ("freopen", "freopen64")  # libc opens these by itself
        assert again or placed.osts(name) == [[i % 8, (i + 3) % 8]], name
        assert placed.create(f"/{name}").outcome == (SKIPPED if again else HIT)
    # Their names are random: libc creates them by itself, they are recorded and never placed.
    made = {c.key[1:].split(".")[0]: c.outcome for c in placed.creates if "." in c.key}
    assert made == dict.fromkeys(BY_TEMPLATE, SKIPPED)
    # What is opened again by the fortified forms has one record all the same.
    written = {c.key[1:]: (c.size, c.written) for c in placed.closes}
    again = {name for name, sizes in written.items() if sizes == (8, 8)}
    assert again == {"open", "open64", "openat", "openat64"} and len(placed.closes) == len(written)
    assert {sizes for name, sizes in written.items() if name not in again} == {(4, 4)}


CALLS = {
    "absolute": ("-", "{mount}/a/b/f", 2),
    "relative": ("-", "a/b/f", 2),
    "working directory": ("={mount}/a/b", "f", 2),
    "below the working directory": ("={mount}/a", "b/f", 3),
    "descriptor": ("@{mount}/a/b", "f", 2),
    "below a descriptor": ("@{mount}/a", "b/f", 3),
    "dots": ("-", "a/../a/./b/f", 3),
    "a link": ("-", "link/b/f", 4),
}
"""The directory, the name, and the system calls that a directory costs the first time. Two is the rule: open and
close without following links. Where the working directory or a descriptor's is new as well, that is another one;
links and dots have to be resolved by the kernel."""

OTHERS = ("getpid(", "mmap(", "fgetxattr(")
"""Whether the process was forked, memory, and whether the file has a layout: not about directories."""


@pytest.mark.parametrize("how", CALLS)
def test_added_system_calls(plain: Runs, compiled: Any, how: str) -> None:
    (plain.mount / "a" / "b").mkdir(parents=True)
    (plain.mount / "link").symlink_to("a")
    maps = plain.work / "maps"
    maps.mkdir()
    write_control(maps)
    plain.environment |= {"TARAZU_MAP": str(maps), "TARAZU_MODE": "place", "TARAZU_RECORD": "off"}
    directory, name, most = CALLS[how]
    words = [directory.format(mount=plain.mount), name.format(mount=plain.mount), "warm"]
    program = compiled("paths.c")

    def calls(preload: str) -> list[int]:
        """System calls between the marks, one number for each of three opens."""
        for old in (plain.mount / "a" / "b").iterdir():
            old.unlink()
        environ = {k: v for k, v in plain.environ().items() if k != "LD_PRELOAD"}
        trace = plain.work / "trace"
        argv = ["strace", "-o", trace, "-E", f"LD_PRELOAD={preload}", program, *words]
        assert plain.run([str(a) for a in argv], environ).returncode == 0
        lines = trace.read_text().splitlines()
        marks = [i for i, line in enumerate(lines) if line.startswith("getppid(")]
        assert len(marks) == 6
        between = [lines[marks[i] + 1 : marks[i + 1]] for i in (0, 2, 4)]
        return [sum(not line.startswith(OTHERS) for line in part) for part in between]

    bare, ours = calls(""), calls(plain.library)
    assert bare == [1, 1, 1]
    added = [b - a for a, b in zip(bare, ours)]
    assert added[0] <= most
    assert added[1:] == [0, 0]


def test_llapi_does_not_follow_a_directory_that_was_renamed(placed: Placed) -> None:
    """The path of a descriptor's directory may be another directory's by now."""
    placed.map(placed.row("/d/warm", (0,)), placed.row("/d/f", (3, 1)))
    source = """
import os
os.mkdir("d")
d = os.open("d", os.O_RDONLY)
os.close(os.open("warm", os.O_CREAT | os.O_WRONLY, dir_fd=d))
os.rename("d", "moved")
os.mkdir("d")
os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=d))
"""
    assert placed.python(source, TARAZU_APPLY="llapi").stderr == ""
    assert sorted(p.name for p in (placed.mount / "moved").iterdir()) == ["f", "warm"]
    assert list((placed.mount / "d").iterdir()) == []


def test_a_link_that_is_turned_is_followed_by_the_program_all_the_same(placed: Placed) -> None:
    """The library remembers directories: the key may be the old one's, the file is where the program wants it."""
    placed.map(placed.row("/one/f", (3, 1)))
    source = """
import os
for name in ("one", "two"):
    os.mkdir(name)
    os.path.lexists("now") and os.unlink("now")
    os.symlink(name, "now")
    open("now/f", "x").close()
"""
    assert placed.python(source).stderr == ""
    assert (placed.mount / "one" / "f").exists() and (placed.mount / "two" / "f").exists()


@pytest.mark.parametrize("how", ["local", "global", "deepbind", "dlmopen"])
def test_a_library_that_is_loaded_later(placed: Placed, compiled: Any, how: str) -> None:
    plugin, loader = compiled("plugin.c", "-shared", "-fPIC"), compiled("loader.c", "-ldl")
    placed.map(placed.row("/f", (3, 1, 5)))
    done = placed([loader, plugin, how, "f"])
    assert (done.returncode, done.stderr) == (0, "")
    assert (placed.mount / "f").read_bytes() == b"data"
    if how in ("local", "global"):
        assert placed.osts("f") == [[3, 1, 5]] and placed.create("/f").outcome == HIT
    else:
        assert placed.creates == []  # as docs/limitations.md says


def test_a_static_program_is_not_seen(plain: Runs, tmp_path: Path) -> None:
    out = tmp_path / "static"
    subprocess.run(["cc", "-static", Path(__file__).parent / "programs" / "every.c", "-o", out], check=True)
    assert plain([out]).returncode == 0
    assert (plain.mount / "open").exists() and plain.spools == []
