"""A program in a container with another root: placed where the library, its map and its spools are bound in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu import built
from tarazu.sim.testbed.library import library_directory

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytestmark = pytest.mark.skipif(
    not shutil.which("bwrap") or os.geteuid() != 0, reason="needs bwrap (Debian: bubblewrap) and root"
)
SYSTEM = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
LINKS = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]


def _bound(*paths: Path | str) -> list[str]:
    return [word for path in paths for word in ("--bind", str(path), str(path))]


def test_a_container_of_namespaces(loop: Loop) -> None:
    library = built.library_path("libtarazu.so").parent
    lustre = [*SYSTEM, *LINKS, *_bound(loop.testbed.directory, library, library_directory())]
    out = loop.mount() / "out"
    writes = ["/usr/bin/dd", "if=/dev/zero", f"of={out}", "bs=1M", "count=1", "status=none"]
    for _ in range(2):
        loop.run("bwrap", *lustre, *_bound("/dev/shm"), *writes, app="bound")
        loop.clear()
    assert [run["outcomes"] for run in loop.json("history", "list", "bound")] == [
        {"unmanaged": 1},
        {"hit": 1},
    ]
    # Where the library is not bound in the loader says so, the program runs as ever, and nothing is known of it.
    done = loop.tarazu(
        "run", "--app", "unbound", "--", "bwrap", *SYSTEM, *LINKS, *_bound(out.parent), *writes
    )
    assert (done.returncode, out.stat().st_size) == (0, 1 << 20) and "libtarazu.so" in done.stderr
    assert loop.tarazu("history", "list", "unbound").returncode == 1
