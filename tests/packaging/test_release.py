"""`make release`: what is no release is refused; the same commit gives the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import release
import tree

ROOT = Path(__file__).parents[2]


def git(directory: Path, *words: str) -> None:
    command = ["git", "-C", directory, "-c", "user.name=n", "-c", "user.email=n@localhost", *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{tree.VERSION}]\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    monkeypatch.setattr(tree, "SOURCE", tmp_path)
    return tmp_path


def test_a_clean_checkout_whose_version_has_its_chapter_is_a_release(checkout: Path) -> None:
    assert release.problem() == ""


def test_what_is_not_committed_is_no_release(checkout: Path) -> None:
    (checkout / "new").write_text("")
    assert release.problem() == "expected everything to be committed, found ?? new"


def test_a_version_without_its_chapter_is_no_release(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.1]\n")
    git(checkout, "commit", "-q", "-a", "-m", "next")
    expected = f"expected [{tree.VERSION}] to be the first chapter of CHANGELOG.md, found Unreleased"
    assert release.problem() == expected


@pytest.mark.long
def test_the_same_commit_gives_the_same_wheel(tmp_path: Path) -> None:
    """From two folders, one after the other."""
    sums = []
    for name in ("one", "another"):
        git(tmp_path, "clone", "-q", str(ROOT), name)
        command = [sys.executable, "packaging/release.py", "--any", "--only", "wheel"]
        done = subprocess.run(command, cwd=tmp_path / name, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Left for you:" in done.stdout
        sums.append((tmp_path / name / "dist" / "SHA256SUMS").read_text())
    assert sums[0] == sums[1] and ".whl" in sums[0]
