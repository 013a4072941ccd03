"""Imports point downwards only, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = {"errors", "units", "model", "config"}
MAY_IMPORT = {
    "errors": set(),
    "units": set(),
    "model": set(),
    "config": {"errors", "units"},
    "elf": BASE,
    "native": BASE,
    "escapes": BASE | {"elf", "native"},
    "wire": BASE,
    "stats": BASE | {"wire"},
    "layout": BASE,
    "allocate": BASE | {"layout"},
    "trace": BASE | {"native"},
    "predict": BASE | {"trace", "native"},
    "store": BASE | {"layout", "trace", "native"},
    "run": BASE | {"wire", "stats", "layout", "trace", "predict", "store", "native"},
}
"""Room → the rooms of tarazu that it may import (itself always)."""


def imported(path: Path) -> set[str]:
    """Rooms of tarazu that a module names in its imports, wherever they stand."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "tarazu":
            rooms |= {alias.name for alias in node.names}
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("tarazu.")}
    return rooms


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_lies_below_it(room: str) -> None:
    single = ROOT / "tarazu" / f"{room}.py"
    modules = [single] if single.exists() else sorted((ROOT / "tarazu" / room).rglob("*.py"))
    for module in modules:
        above = imported(module) - MAY_IMPORT[room] - {room}
        assert not above, f"{module.relative_to(ROOT)} imports {above}"


def test_every_room_is_in_the_table() -> None:
    rooms = {p.stem if p.is_file() else p.name for p in (ROOT / "tarazu").iterdir()}
    assert rooms - {"__init__", "__main__", "__pycache__", "cli"} <= set(MAY_IMPORT)


def files_that_it_imports(path: Path, files: dict[str, Path]) -> set[str]:
    """Modules among `files` that a module needs; what stands under TYPE_CHECKING is not needed."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names & files.keys()


@pytest.mark.parametrize("room", ["tarazu", "daemons", "sim"])
def test_no_files_import_each_other_in_a_circle(room: str) -> None:
    package = "tarazu" if room == "tarazu" else f"tarazu.{room}"
    files = {
        ".".join((package, *path.relative_to(ROOT / room).with_suffix("").parts)): path
        for path in (ROOT / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    above = {name: files_that_it_imports(path, files) - {name} for name, path in files.items()}
    while free := [name for name, needs in above.items() if not needs]:
        above = {name: needs - set(free) for name, needs in above.items() if name not in free}
    assert not above, f"in a circle, or above one: {sorted(above)}"
