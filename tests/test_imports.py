"""Imports point downwards only, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = {
    "durable",
    "errors",
    "malformed",
    "past",
    "statx",
    "units",
    "names",
    "lustre",
    "model",
    "config",
    "trusted",
}
MAY_IMPORT = {
    "durable": set(),
    "errors": set(),
    "malformed": set(),
    "past": set(),
    "statx": set(),
    "units": set(),
    "names": set(),
    "lustre": set(),
    "model": set(),
    "config": {"errors", "units"},
    "trusted": {"errors"},
    "elf": BASE,
    "native": BASE,
    "escapes": BASE | {"elf", "native"},
    "wire": BASE,
    "stats": BASE | {"wire"},
    "layout": BASE,
    "pools": BASE | {"wire"},
    "allocate": BASE | {"layout"},
    "trace": BASE | {"native"},
    "predict": BASE | {"trace", "native"},
    "forwarding": BASE | {"trace", "native"},
    "tune": BASE | {"stats", "wire"},
    "rebalance": BASE | {"layout", "allocate", "native", "trace", "wire"},
    "store": BASE | {"layout", "trace", "native"},
    "doctor": BASE | {"wire", "stats", "trace", "store", "prepare", "run", "native"},
    "prepare": BASE | {"native", "layout", "wire"},
    "run": BASE | {"wire", "stats", "layout", "trace", "predict", "store", "forwarding", "native"},
}
"""Room → the rooms of tarazu that it may import (itself always)."""


def imported(path: Path) -> set[str]:
    """Rooms of tarazu that a module names in its imports, wherever they stand."""
    rooms: set[str] = set()
    for node in ast.walk(parsed(path)):
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


DECLARED_CIRCLES = {
    frozenset(
        {"daemons.mdsd", "daemons.mdsd_status", "daemons.metrics.mdsd"}
    ): "mdsd answers with how it is, which looks at all of it; and so do its figures",
    frozenset({"daemons.ossd", "daemons.metrics.ossd"}): "its figures are of all of it",
    frozenset({"daemons.clientd", "daemons.metrics.clientd"}): "its figures are of all of it",
    frozenset(
        {"daemons.council.service", "daemons.council.status", "daemons.metrics.council"}
    ): "it answers with how it is, which looks at all of it; and so do its figures",
    frozenset({"daemons.announcer.service", "daemons.metrics.announcer"}): "its figures are of all of it",
    frozenset({"daemons.bursts.service", "daemons.metrics.bursts"}): "its figures are of all of it",
    frozenset(
        {"sim.testbed.testbed", "sim.testbed.daemons", "sim.testbed.usage"}
    ): "methods of a testbed, by topic",
}
"""Files that name one another's types, which only mypy follows → why. At run time there is no circle at all."""


def product() -> dict[str, Path]:
    """Module → file, by the names under which they are imported."""
    found: dict[str, Path] = {}
    for top, name in (("tarazu", "tarazu"), ("daemons", "tarazu.daemons"), ("sim", "tarazu.sim")):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            found[".".join((name, *(part for part in parts if part != "__init__")))] = path
    return found


class Imports(ast.NodeVisitor):
    """Modules that a file imports, in functions too; those for type checkers only where `types` says so."""

    def __init__(self, known: Collection[str], types: bool) -> None:
        self.known, self.types, self.found = set(known), types, set[str]()

    def visit_If(self, node: ast.If) -> None:
        if self.types or not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found |= {alias.name for alias in node.names} & self.known

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        named = {f"{node.module}.{alias.name}" for alias in node.names}
        self.found |= named & self.known or {str(node.module)} & self.known


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def circles(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of modules each of which comes to every other one, and so to itself."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [*imports[start]]
        while todo:
            if (module := todo.pop()) not in seen:
                seen.add(module)
                todo += imports[module]
        return seen

    below = {module: reached(module) for module in imports}
    return {
        frozenset(m for m in below if m in below[module] and module in below[m])
        for module in below
        if module in below[module]
    }


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {frozenset({"b", "c"})}


@pytest.mark.parametrize("types", [False, True])
def test_no_files_import_one_another_in_a_circle(types: bool) -> None:
    files = product()
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        visitor = Imports(files, types)
        visitor.visit(parsed(path))
        imports[module] = visitor.found
    assert sum(map(len, imports.values())) > 300, "few imports were found"
    declared = {frozenset(f"tarazu.{name}" for name in names) for names in DECLARED_CIRCLES}
    assert circles(imports) == (declared if types else set())
