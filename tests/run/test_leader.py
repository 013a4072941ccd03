"""The leader's modules are loaded while the program runs: at the end its files may be gone, or another version's."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

BEFORE = "before the program is started"
NEVER = "not by a leader"
ELSEWHEN = {
    "tarazu.cli.output": BEFORE,
    "tarazu.cli.parser": BEFORE,
    "importlib.metadata": BEFORE,
    "argparse": BEFORE,
    "difflib": BEFORE,
    "tomllib": BEFORE,
    "pyarrow": NEVER,
    "pyarrow.parquet": NEVER,
    "dataclasses": NEVER,
}
"""What modules of a leader import only within functions, and a leader has not loaded beside the program."""
SCRIPT = """
import sys, threading
from types import SimpleNamespace
import tarazu.cli.run
from tarazu.run import before, leader, step
leader.load(SimpleNamespace(over=threading.Event()))
assert "tarazu.native" in sys.modules
for name, module in sys.modules.items():
    print(name, getattr(module, "__file__", None) or "", sep="\\t")
"""


def late(file: Path) -> Iterator[str]:
    """Modules that functions of this one import."""
    for function in ast.walk(ast.parse(file.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def test_a_leader_has_loaded_what_its_end_may_need() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    loaded = dict(line.partition("\t")[::2] for line in done.stdout.splitlines())
    needed = {
        name
        for module, file in loaded.items()
        if file and module.startswith("tarazu")
        for name in late(Path(file))
        if name not in loaded and is_module(name)
    }
    assert needed == set(ELSEWHEN), needed ^ set(ELSEWHEN)
