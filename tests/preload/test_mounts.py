"""Which file system a file lies in, and its key there: from the kernel's mount table and from TARAZU_MOUNTS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Runs = Any
WRITE = "import sys\nfor path in sys.argv[1:]: open(path, 'w').write('x')"


def under(table: Path, *argv: str) -> list[str]:
    """A command whose process sees this mount table as its own."""
    show = 'mount --bind "$0" /proc/$$/mounts && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", show, str(table), *argv]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text("")
    if subprocess.run(under(path, "true"), capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of one's own here")
    return path


def keys(plain: Runs) -> dict[str, set[str]]:
    """File system → keys of the files that were created there."""
    found: dict[str, set[str]] = {}
    for create in plain.creates:
        found.setdefault(create.fs, set()).add(create.key)
    return found


def test_the_kernels_table_with_blanks_utf_8_aliases_and_subdirectories(
    plain: Runs, tmp_path: Path, table: Path
) -> None:
    whole, alias, part = tmp_path / "größe zwei", tmp_path / "alias", tmp_path / "one\\two"
    for directory in (whole, alias, part, whole / "fast"):
        directory.mkdir()
    lines = (
        ("1@tcp:2@tcp:/work", whole),
        ("1@tcp:/work", alias),
        ("1@tcp:/work/projects/p\\0401", part),
        ("9@o2ib:/scratch", whole / "fast"),
    )
    for device, path in lines:
        escaped = str(path).replace("\\", "\\134").replace(" ", "\\040")
        table.write_text(f"{table.read_text()}{device} {escaped} lustre rw,flock 0 0\n")
    del plain.environment["TARAZU_MOUNTS"]
    paths = [whole / "ü f", alias / "g", part / "h", whole / "fast" / "ü f"]
    done = plain(under(table, sys.executable, "-c", WRITE, *map(str, paths)))
    assert (done.returncode, done.stderr) == (0, "")
    assert keys(plain) == {"work": {"/ü f", "/g", "/projects/p 1/h"}, "scratch": {"/ü f"}}


def test_two_mount_points_of_one_file_system_are_one_name_for_a_file(plain: Runs, tmp_path: Path) -> None:
    """The second one is the first one seen elsewhere, as a second mount is: the file is the same, so is its key."""
    alias = tmp_path / "a=b"
    alias.symlink_to(plain.mount)
    plain.environment["TARAZU_MOUNTS"] = f"{plain.mount}=lustre:{alias}=lustre"
    done = plain.python(WRITE, str(alias / "x"), str(plain.mount / "y"))
    assert (done.returncode, done.stderr) == (0, "")
    assert keys(plain) == {"lustre": {"/x", "/y"}}
