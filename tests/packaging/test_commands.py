"""Each package's commands, with the Python packages that it is installed with and no others."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import commands
import contents
import pytest
import tree

from tarazu import config
from tarazu.sim.testbed import testbed

BAR = """
import sys
from pathlib import PurePosixPath
sys.path.insert(0, {packaging!r})
import commands, contents
barred, analysis = {barred!r}, {analysis!r}
class Bar:
    def find_spec(self, name, path=None, target=None):
        file = PurePosixPath(*name.split(".")).with_suffix(".py")
        if name.partition(".")[0] in barred or (not analysis and contents.is_of_analysis(file)):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Bar())
"""
TRIED = "wrong = list(commands.complaints({package!r}, {settings!r})); print(*wrong, sep='\\n'); sys.exit(bool(wrong))"


def installed_with(package: str) -> set[str]:
    """Top-level names of the Python packages."""
    one = next(each for each in contents.PACKAGES if each.name == package)
    own = {name for each in tree.closure(one.extras).values() for name in names_of(each)}
    return own.union(*map(installed_with, one.needs))


@functools.cache
def everything() -> set[str]:
    return {name for each in importlib.metadata.distributions() for name in names_of(each)}


def names_of(distribution: importlib.metadata.Distribution) -> set[str]:
    return {file.parts[0].partition(".")[0] for file in distribution.files or () if file.parts[0] != ".."}


def alone(package: str, code: str, directory: Path, root: Path) -> subprocess.CompletedProcess[str]:
    """Run by a Python that has what the package is installed with, on a node whose /proc and /sys are below `root`."""
    barred = everything() - installed_with(package) - {"tarazu", "__editable__", "_tarazu_editable"}
    assert "numpy" in barred or package != "tarazu-oss"
    bar = BAR.format(
        packaging=str(tree.SOURCE / "packaging"), barred=sorted(barred), analysis=package == "tarazu-analysis"
    )
    environ = {
        **os.environ,
        "HOME": str(directory),
        "TARAZU_STATE_DIRECTORY": str(directory / "state"),
        "TARAZU_ROOT": str(root),
    }
    return subprocess.run(
        [sys.executable, "-c", bar + code],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        cwd=directory,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Of a site without daemons."""
    file = tmp_path / "tarazu.toml"
    file.write_text(
        f'[keys]\ndirectory = "{tmp_path}/keys"\n[clientd]\nsocket = "{tmp_path}/none.sock"\n'
        f'[state]\ndirectory = "{tmp_path}/state"\n[run]\nstate_dir = "{tmp_path}/own"\n'
    )
    return file


@pytest.fixture(scope="module")
def oss(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An OSS with statistics of OSTs."""
    directory = tmp_path_factory.mktemp("commands") / "tb"
    bed = testbed.up(directory, osss=1, osts_per_oss=2)
    bed.refresh()
    yield bed.oss_root("oss1")
    testbed.down(directory)


@pytest.mark.parametrize("package", ["tarazu-oss", "tarazu"])
def test_no_command_ends_with_a_traceback_where_one_package_is_all_there_is(
    package: str, settings: Path, oss: Path, tmp_path: Path
) -> None:
    config.load(settings, {})  # else each command only says what is wrong with them
    assert set(commands.MEANT) | {"tarazu-preload"} == {each.name for each in contents.PACKAGES}
    done = alone(package, TRIED.format(package=package, settings=str(settings)), tmp_path, oss)
    assert done.returncode == 0, done.stdout + done.stderr
