"""Structs are described to msgspec before two threads can meet one half described, which kills the process."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.model import JobStep
from tarazu.then import JobThen, OstThen, ServerThen, System
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.trace.runfile import encode_run

PRODUCT = Path(__file__).parents[1] / "tarazu"
ONE_THREAD = {
    "cli/db.py",
    "parts/changes/noted.py",
    "table.py",
}
"""Where a struct is decoded by the only thread that does so, or as a kind that the caller names."""
PLAIN = {"dict", "tuple", "list"}

READ = """
import sys, threading
sys.setswitchinterval(1e-6)
from tarazu.trace.runfile import read_run
together = threading.Barrier(4)
def read():
    together.wait()
    read_run(sys.argv[1])
threads = [threading.Thread(target=read) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_that_read_their_first_runs_at_once_do_not_crash(tmp_path: Path) -> None:
    system = System(9, {1: OstThen("oss0", 1.0)}, {"oss0": ServerThen(0.5, 1, 1, (JobThen("1", 2, 3),))})
    file = FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 0.0, 4 << 20)
    run = RunRecord(JobStep("scratch", os.getuid(), "ior", "4711"), 9.0, 9.0, "light", (file,), system=system)
    path = tmp_path / "1.run"
    path.write_bytes(encode_run(run))
    for _ in range(15):  # one of about seven crashed
        done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def _decoded(tree: ast.AST) -> set[str]:
    """Names of the kinds that calls of msgspec decode."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not ast.unparse(node.func).startswith("msgspec."):
                continue
            kinds = [word.value for word in node.keywords if word.arg == "type"]
            if node.func.attr == "convert":
                kinds += node.args[1:2]
            found |= {n.id for kind in kinds for n in ast.walk(kind) if isinstance(n, ast.Name)}
    return found


@pytest.mark.parametrize("part", sorted(p.name for p in PRODUCT.iterdir() if p.name not in ("sim", "cli")))
def test_what_is_decoded_by_its_kind_is_described_by_its_module(part: str) -> None:
    paths = [PRODUCT / part] if part.endswith(".py") else sorted((PRODUCT / part).rglob("*.py"))
    for path in paths:
        where = path.relative_to(PRODUCT).as_posix()
        if where in ONE_THREAD:
            continue
        missing = (
            _decoded(ast.parse(path.read_text())) - PLAIN - _described() - {"Any", "str", "bytes", "msgspec"}
        )
        assert not missing, f"{where}: described() at the end of the module of {missing}"


@functools.cache
def _described() -> set[str]:
    found = set()
    for path in PRODUCT.rglob("*.py"):
        text = path.read_text()
        for line in text.splitlines():
            if line.startswith("described(") or ("Decoder(" in line and line.startswith("_")):
                found |= {name.id for name in ast.walk(ast.parse(line)) if isinstance(name, ast.Name)}
    return found
