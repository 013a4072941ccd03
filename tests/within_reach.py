"""A Python that other users of the machine can run: the checkout, or the Python of its virtual environment, may lie in
a home of mode 0700."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import msgspec

import tarazu
from tarazu import built

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


@functools.cache
def interpreter(uid: int) -> str:
    """The first of this Python, and the system's of the same version, that the user may start; "": none."""
    for each in (sys.executable, f"/usr/bin/{VERSION}", f"/usr/local/bin/{VERSION}"):
        if _runs(uid, each, "-c", ""):
            return each
    return ""


@functools.cache
def path_of_tarazu(uid: int) -> str:
    """$PYTHONPATH with which that Python finds tarazu: empty, or a copy of the package and of all that `tarazu run`
    needs."""
    if _runs(uid, interpreter(uid), "-c", "import tarazu.cli.run"):
        return ""
    copied = Path(tempfile.mkdtemp(prefix="tarazu-python-"))
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    shutil.copytree(
        Path(tarazu.__file__).parent, copied / "tarazu"
    )  # compiled: else each start takes seconds
    shutil.copytree(built.library_path("libtarazu.so").parent, copied / "tarazu" / "lib", dirs_exist_ok=True)
    shutil.copytree(Path(msgspec.__file__).parent, copied / "msgspec")
    # What the package's metadata names is found by it: its parts.
    for each in Path(str(metadata.distribution("tarazu").locate_file(""))).glob("tarazu-*.dist-info"):
        shutil.copytree(each, copied / each.name)
    subprocess.run(["chmod", "-R", "a+rX", copied], check=True)
    return str(copied)


def _runs(uid: int, *words: str) -> bool:
    with contextlib.suppress(OSError):
        done = subprocess.run(
            words, user=uid, group=uid, extra_groups=[], cwd="/", env={"PATH": os.defpath}, capture_output=True,
            check=False,
        )  # fmt: skip
        return done.returncode == 0
    return False
