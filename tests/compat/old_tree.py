"""A version of before, from the repository's own history, in an environment of its own beside this one's packages."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"


class NoHistory(Exception):
    """The commit is not to be had: no git, an exported tree, a shallow clone."""


def versions(part: str) -> list[Path]:
    """Directories of golden bytes that have this part (`wire.json`, `maps`, `ledger`), the oldest version first."""
    return sorted(path for path in GOLDEN.iterdir() if (path / part).exists())


def commit_of(version: Path) -> str:
    return (version / "commit").read_text().strip()


def build(commit: str, directory: Path) -> Path:
    """The `bin` directory of that version's commands and interpreter. Raises NoHistory."""
    binaries = directory / "env" / "bin"
    if (directory / "done").exists():
        return binaries
    source = directory / "source"
    source.mkdir(parents=True, exist_ok=True)
    try:
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise NoHistory(f"git archive {commit}: {said.decode(errors='replace').strip()}") from None
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    venv.create(directory / "env", with_pip=False)
    # The packages of this environment, but not what its own .pth files name: this tree's code.
    packages = next((directory / "env" / "lib").glob("python*/site-packages"))
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        binaries / "python",
        "install",
        "--quiet",
        "--no-deps",
    ]
    command += ["--disable-pip-version-check", "--ignore-installed", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{commit} cannot be installed: {done.stderr[-2000:]}")
    (directory / "tests").symlink_to(ROOT / "tests")
    (directory / "done").touch()
    return binaries
