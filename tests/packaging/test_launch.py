"""The program that starts the packages' own Python, in a tree as theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "packaging" / "launch.c"
SCRIPT = """\
import json, os, sys
comm = open("/proc/self/comm").read().strip()
print(json.dumps([sys.argv[1:], sys.flags.isolated, comm, sys.executable, os.environ.get("PYTHONPATH"), sys.path]))
sys.exit(7)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prefix") / "lib" / "tarazu"
    for name in ("bin", "names", "scripts"):
        (root / name).mkdir(parents=True)
    program = root / "bin" / "tarazu-some"
    subprocess.run(
        [shutil.which("cc") or "cc", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE], check=True
    )
    (root / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    (root / "names" / "tarazu-some").symlink_to("../bin/python3")
    (root / "scripts" / "tarazu-some").write_text(SCRIPT)
    (root.parents[1] / "bin").mkdir()
    (root.parents[1] / "bin" / "tarazu-some").symlink_to("../lib/tarazu/bin/tarazu-some")
    return root


def test_it_starts_the_python_beside_it_and_users_modules_do_not_reach_it(tree: Path) -> None:
    environ = {"PYTHONPATH": "/nowhere/else", "PYTHONHOME": "/nowhere"}
    done = subprocess.run(
        [tree.parents[1] / "bin" / "tarazu-some", "a b", "--c"],
        env=environ, capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    words, isolated, comm, executable, path, search = json.loads(done.stdout)
    assert (words, isolated, comm) == (["a b", "--c"], 1, "tarazu-some")
    # What it starts gets the environment as it was; nothing of it was used here.
    assert executable == str(tree / "bin" / "python3") and path == "/nowhere/else"
    assert "/nowhere/else" not in search


def test_a_copy_without_its_tree_says_what_is_missing(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    alone = Path(shutil.copy2(tree / "bin" / "tarazu-some", tmp_path / "bin"))
    done = subprocess.run([alone], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == f"tarazu: {tmp_path}/names/tarazu-some: No such file or directory\n"
