"""The library itself: which libc it needs, what it exports, when it stays out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tarazu import built

Runs = Any
PRELOAD = Path(__file__).parent.parent.parent / "preload"


def objdump(*options: str) -> str:
    command = ["objdump", *options, str(built.library_path("libtarazu.so"))]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_needs_no_libc_newer_than_2_17() -> None:
    needed = "\n".join(line for line in objdump("-T").splitlines() if "*UND*" in line)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", needed)}
    assert versions and max(versions) <= (2, 17)


def test_needs_nothing_but_libc() -> None:
    needed = set(re.findall(r"NEEDED\s+(\S+)", objdump("-p")))
    assert needed == {"libc.so.6"}


def test_exports_exactly_the_wrap_table() -> None:
    table = set(re.findall(r"^TZ_WRAP\([^,]+, (\w+),", (PRELOAD / "wrap.def").read_text(), re.M))
    command = ["nm", "-D", "--defined-only", str(built.library_path("libtarazu.so"))]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].partition("@")[0] for line in listed.splitlines() if " A " not in line}
    assert exported == table and len(table) > 50


@pytest.mark.parametrize(
    "extra",
    [
        {"TARAZU_DISABLE": "1"},
        {"TARAZU_RECORD": "off"},
        {"TARAZU_SPOOL": ""},
        {"TARAZU_MOUNTS": "/nonexistent=lustre"},
        {"TARAZU_MOUNTS": "rubbish:=:/=x"},
    ],
)
def test_switched_off(plain: Runs, extra: dict[str, str]) -> None:
    assert plain(["touch", "f"], **extra).returncode == 0
    assert not plain.spool_directory.exists()


def test_a_kill_switch_of_zero_is_no_switch(plain: Runs) -> None:
    plain(["touch", "f"], TARAZU_DISABLE="0")
    assert [c.key for c in plain.creates] == ["/f"]


def _small_root(root: Path) -> None:
    """The least that `touch` needs, with the library where ld.so preloads it even for set-uid programs."""
    root.chmod(0o755)
    listed = subprocess.run(
        ["ldd", "/usr/bin/touch", "/usr/bin/env"], capture_output=True, text=True, check=True
    ).stdout
    needed = {Path(p) for p in re.findall(r"(/\S+) \(0x", listed)}
    libc = next(p for p in needed if p.name.startswith("libc.so"))
    for path in {*needed, Path("/usr/bin/touch"), Path("/usr/bin/env")}:
        (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.relative_to("/"))
    inside = (root / libc.relative_to("/")).with_name("libtarazu.so")
    shutil.copy(built.library_path("libtarazu.so"), inside)
    inside.chmod(0o4755)
    (root / "mnt").mkdir()
    (root / "mnt").chmod(0o777)
    (root / "spool").mkdir()
    os.chown(root / "spool", 65534, 65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a set-uid program and change the root")
def test_inert_in_a_set_uid_program(tmp_path: Path) -> None:
    _small_root(tmp_path)
    environ = ["LD_PRELOAD=libtarazu.so", "TARAZU_MOUNTS=/mnt=lustre", "TARAZU_SPOOL=/spool"]
    touch = tmp_path / "usr" / "bin" / "touch"
    for mode, spools in ((0o755, 2), (0o6755, 0)):  # the process's and the node's
        for old in (tmp_path / "spool").iterdir():
            old.unlink()
        touch.chmod(mode)
        argv = ["chroot", "--userspec=65534:65534", tmp_path, "/usr/bin/env", *environ]
        done = subprocess.run([*argv, "/usr/bin/touch", f"/mnt/f{spools}"], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / "mnt" / f"f{spools}").exists()
        assert len(list((tmp_path / "spool").iterdir())) == spools


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can change the root, and only root's stop file counts"
)
def test_a_changed_root_that_is_no_mount_point_obeys_the_sites_stop_file(tmp_path: Path) -> None:
    """As on nodes whose image is a directory that is changed to: no mount entry says what "/" lies on."""
    _small_root(tmp_path)
    (tmp_path / "etc").mkdir(mode=0o755)
    environ = [
        "LD_PRELOAD=libtarazu.so",
        "TARAZU_MOUNTS=/mnt=lustre",
        "TARAZU_SPOOL=/spool",
        "TARAZU_STOP=/etc/stop",
    ]
    for name, stopped in (("before", False), ("stopped", True), ("after", False)):
        (tmp_path / "etc" / "stop").unlink(missing_ok=True)
        if stopped:
            (tmp_path / "etc" / "stop").touch(0o644)
        argv = ["chroot", "--userspec=65534:65534", tmp_path, "/usr/bin/env", *environ]
        done = subprocess.run([*argv, "/usr/bin/touch", f"/mnt/{name}"], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / "mnt" / name).exists()
        recorded = b"".join(path.read_bytes() for path in (tmp_path / "spool").iterdir())
        assert (b"/" + name.encode() in recorded) is not stopped


def test_both_orders_with_another_preload(plain: Runs, compiled: Any) -> None:
    counter = compiled("counter.c", "-shared", "-fPIC", "-ldl")
    program = compiled("errors.c")
    for order in (f"{counter} {plain.library}", f"{plain.library} {counter}"):
        shutil.rmtree(plain.mount)
        plain.mount.mkdir()
        done = plain([program], LD_PRELOAD=order)
        assert done.returncode == 0
        assert int(done.stderr) > 5
        assert {"/f", "/g", "/c"} <= {c.key for c in plain.creates}


@pytest.mark.skipif(not shutil.which("clang"), reason="gcc's warnings are looked for in test_structure.py")
def test_clang_has_no_warnings() -> None:
    options = ["-fsyntax-only", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", f"-I{PRELOAD}"]
    sources = map(str, sorted(PRELOAD.rglob("*.c")))
    done = subprocess.run(["clang", *options, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
