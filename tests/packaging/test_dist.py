"""`make dist` says what it needs before it installs or builds anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tree

PROGRAMS = "sh make cc strip objdump gzip dpkg-deb env"


@pytest.mark.parametrize(
    ("verb", "words", "says"),
    [
        ("dist", "DIST_ARGS=--only deb", "deb: expected patchelf (Debian: apt install patchelf), found none"),
        (
            "dist",
            "DIST_ARGS=--only rpm --fast",
            "rpm: expected patchelf, rpmbuild (Debian: apt install patchelf rpm), found none",
        ),
        ("release", "RELEASE_ARGS=--twice --only tarball", "tarball: expected patchelf, tar, xz (Debian"),
        ("dist", "DIST_ARGS=", "wheel, tarball, deb, rpm: expected patchelf, rpmbuild, tar, xz (Debian"),
    ],
)
def test_what_is_missing_for_what_was_asked_is_said_before_anything_is_built(
    tmp_path: Path, verb: str, words: str, says: str
) -> None:
    programs, clone = tmp_path / "bin", tmp_path / "clone"
    programs.mkdir()
    clone.mkdir()
    for name in PROGRAMS.split():
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"needs {name}")
        (programs / name).symlink_to(found)
    (programs / "python3").symlink_to(sys.executable)
    shutil.copy(tree.SOURCE / "Makefile", clone)
    (clone / "packaging").symlink_to(tree.SOURCE / "packaging")
    environ = {"PATH": str(programs)}
    done = subprocess.run(
        ["make", verb, words], cwd=clone, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode and f"make dist: {says}" in done.stderr, done
    assert sorted(path.name for path in clone.iterdir()) == ["Makefile", "packaging"]


def test_what_the_wheel_needs_is_no_tool_of_packages() -> None:
    done = subprocess.run(
        [
            sys.executable,
            tree.SOURCE / "packaging/dist.py",
            "--check",
            "--only",
            "wheel",
        ],
        env={"PATH": str(Path(shutil.which("cc") or "/usr/bin/cc").parent)},
        check=False,
    )
    assert done.returncode == 0
