"""Imports point downwards only, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Set
from pathlib import Path
from typing import NamedTuple

import pytest

from tarazu.part import installed

ROOT = Path(__file__).parents[1]
BASE = {
    "durable",
    "figures",
    "guard",
    "errors",
    "malformed",
    "past",
    "reading",
    "signals",
    "statx",
    "stripes",
    "table",
    "units",
    "names",
    "nids",
    "ranges",
    "built",
    "left",
    "locks",
    "lustre",
    "ost_state",
    "model",
    "then",
    "config",
    "trusted",
}
MAY_IMPORT = {
    "durable": set(),
    "guard": {"signals"},
    "errors": set(),
    "figures": set(),
    "malformed": set(),
    "past": set(),
    "reading": {"errors"},
    "signals": set(),
    "statx": {"signals"},
    "stripes": set(),
    "table": {"errors", "malformed"},
    "units": set(),
    "names": set(),
    "nids": {"errors"},
    "ranges": set(),
    "built": {"errors"},
    "left": set(),
    "locks": {"errors"},
    "lustre": set(),
    "ost_state": {"malformed"},
    "model": {"malformed", "ost_state"},
    "then": {"malformed", "ost_state"},
    "config": {"errors", "names", "units", "ost_state"},
    "trusted": {"errors"},
    "drawing": {"errors"},
    "part": BASE | {"trace"},
    "native": BASE,
    "flows": BASE,
    "program": {"errors", "config", "signals"},
    "batch": BASE | {"program"},
    "escapes": BASE | {"native"},
    "wire": BASE,
    "stats": BASE | {"wire"},
    "layout": BASE,
    "allocate": BASE | {"layout", "flows"},
    "trace": BASE | {"native"},
    "predict": BASE | {"trace", "native"},
    "evidence": BASE | {"trace"},
    "store": BASE | {"layout", "trace", "native"},
    "plan": BASE | {"layout", "store", "native", "wire"},
    "doctor": BASE | {"part", "evidence", "wire", "stats", "allocate", "trace", "store", "run", "native"},
    "run": BASE
    | {
        "part",
        "batch",
        "program",
        "wire",
        "stats",
        "layout",
        "trace",
        "predict",
        "store",
        "native",
    },
    "report": BASE
    | {
        "part",
        "allocate",
        "drawing",
        "evidence",
        "layout",
        "native",
        "plan",
        "predict",
        "run",
        "stats",
        "store",
        "trace",
        "wire",
    },
}
MAY_IMPORT["daemons"] = BASE | {
    "part",
    *(
        "allocate",
        "batch",
        "evidence",
        "flows",
        "layout",
        "native",
        "plan",
        "predict",
    ),
    *("program", "stats", "store", "trace", "wire"),
}
MAY_IMPORT["daemons/slurm"] = BASE | {"run", "native"}
MAY_IMPORT["cli"] = BASE | {
    "part",
    *(
        "allocate",
        "batch",
        "daemons",
        "doctor",
        "drawing",
        "escapes",
        "layout",
        "native",
        "predict",
    ),
    *("report", "run", "stats", "store", "trace", "wire"),
}
MAY_IMPORT["sim"] = BASE | {
    "part",
    *("allocate", "batch", "cli", "daemons", "drawing", "flows", "layout", "native", "predict"),
    *("report", "run", "stats", "store", "trace", "wire"),
}
"""Room → the rooms of tarazu that it may import (itself always)."""
MAY_ASK: dict[str, set[str]] = {
    "daemons from cli": {
        "asking",
        "mdsd.health",
        "ossd.service",
        "slurm",
    },
    "daemons from sim": {
        "clientd.forecasts.work",
        "clientd.planner",
        "mdsd.allocation_requests",
        "mdsd.limits",
        "programs",
    },
    "cli from sim": {"output"},
}
"""Of a room that runs by itself or prints: the rooms and modules of it that others may import."""
MAY_IMPORT_DAEMONS: dict[str, set[str]] = {
    "clientd": set(),
    "mdsd": set(),
    "ossd": set(),
    "service": set(),
    "slurm": set(),
}
"""Room of a daemon, or the module that runs them all → other rooms of daemons that it may import. What lies beside the
rooms each may import; that imports none of them.
"""


@functools.cache
def imported(path: Path) -> set[str]:
    """Rooms of tarazu that a module names in its imports, wherever they stand."""
    rooms: set[str] = set()
    for node, *_ in statements(path):
        if isinstance(node, ast.ImportFrom) and node.module == "tarazu":
            rooms |= {alias.name for alias in node.names}
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("tarazu.")}
    return rooms


class Import(NamedTuple):
    """One import statement of a file."""

    node: ast.Import | ast.ImportFrom
    types: bool
    """Only for type checkers."""
    later: bool
    """Made when a function is called."""


@functools.cache
def statements(path: Path) -> list[Import]:
    """The imports of a file; the rest of its tree is let go."""
    found: list[Import] = []
    todo: list[tuple[ast.AST, bool, bool]] = [(ast.parse(path.read_text()), False, False)]
    while todo:
        node, types, later = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(Import(node, types, later))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            types = types or node.test.id == "TYPE_CHECKING"
        later = later or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            inside = getattr(node, part, ())
            todo += [(each, types, later) for each in inside] if isinstance(inside, list) else ()
    return found


def modules_of(room: str) -> list[Path]:
    """A room that lies in another one and has a row of its own is no part of that."""
    single = ROOT / "tarazu" / f"{room}.py"
    if single.exists():
        return [single]
    own = [f"{other.removeprefix(room)}/" for other in MAY_IMPORT if other.startswith(f"{room}/")]
    files = sorted((ROOT / "tarazu" / room).rglob("*.py"))
    return [file for file in files if not any(f"/{room}{part}" in str(file) for part in own)]


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_lies_below_it(room: str) -> None:
    assert modules_of(room)
    for module in modules_of(room):
        above = imported(module) - MAY_IMPORT[room] - {room.partition("/")[0]}
        assert not above, f"{module.relative_to(ROOT)} imports {above}"


def test_every_room_is_in_the_table() -> None:
    rooms = {p.stem if p.is_file() else p.name for p in (ROOT / "tarazu").iterdir()}
    assert rooms - {"__init__", "__main__", "__pycache__", "sim", "lib", "parts"} <= set(MAY_IMPORT)


def test_a_daemon_imports_no_other_ones_room() -> None:
    files = {module: path for module, path in product().items() if module.startswith("tarazu.daemons.")}
    rooms = {path.parent.name for path in (ROOT / "tarazu/daemons").glob("*/__init__.py")}
    assert rooms | {"service"} == set(MAY_IMPORT_DAEMONS)
    for module, path in files.items():
        others = {name.split(".")[2] for name in imports_of(path, files.keys(), types=True)} & rooms
        above = others - MAY_IMPORT_DAEMONS.get(room := module.split(".")[2], set()) - {room}
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


def test_nothing_that_a_site_runs_imports_the_simulator() -> None:
    """Its commands are found by the names of their modules, in one table."""
    for module, path in product().items():
        if not module.startswith("tarazu.sim"):
            assert "sim" not in imported(path) or _is_stand_in(module), path
            if "tarazu.sim" not in path.read_text():
                continue
            named = {
                node.value
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant) and str(node.value).startswith("tarazu.sim")
            }
            commands = {name for name in named if name == "tarazu.sim." or name.startswith("tarazu.sim.cli")}
            assert named <= (commands if module == "tarazu.cli" else set()), f"{path} names {named}"


def _is_stand_in(module: str) -> bool:
    """What a part has on a testbed, which asks for it; its study; and a part that lies in the simulator's package."""
    _, parts, name, own, *_ = *module.split("."), "", "", ""
    return parts == "parts" and (own in ("testbed", "study") or bool(installed()[name].extra))


def test_the_core_imports_no_part() -> None:
    """Nor does it name a module of one, to import it by that name."""
    for module, path in product().items():
        if module == "tarazu.parts" or module.startswith("tarazu.parts."):
            continue
        assert "parts" not in imported(path), path
        assert "tarazu.parts." not in path.read_text(), path


def test_a_part_imports_no_part_that_it_does_not_name() -> None:
    for module, path in product().items():
        if module.startswith("tarazu.parts.") and "tarazu.parts." in path.read_text():
            if (name := module.split(".")[2]) not in installed():
                continue  # what it needs was taken away
            needs = {name, *installed()[name].needs}
            others = {
                each.split(".")[2] for each in imports(types=True)[module] if each.startswith("tarazu.parts.")
            }
            assert others <= needs, path


@pytest.mark.parametrize("pair", sorted(MAY_ASK))
def test_of_daemons_and_commands_others_import_what_is_made_for_it(pair: str) -> None:
    below, _, above = pair.partition(" from ")
    asked: set[str] = set()
    for module, found in imports(types=True).items():
        if module.startswith(f"tarazu.{above}"):
            asked |= {name for name in found if name.startswith(f"tarazu.{below}")}
    names = {name.removeprefix(f"tarazu.{below}").removeprefix(".") for name in asked}
    allowed = {name for name in names for may in MAY_ASK[pair] if name == may or name.startswith(f"{may}.")}
    assert names == allowed, f"{above} imports {names - allowed} of {below}"
    unused = {may for may in MAY_ASK[pair] if not any(f"{name}.".startswith(f"{may}.") for name in names)}
    assert not unused, f"{above} imports no {unused} of {below} any more"


def product() -> dict[str, Path]:
    """Module → file, by the names under which they are imported."""
    found: dict[str, Path] = {}
    for path in (ROOT / "tarazu").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports_of(path: Path, known: Set[str], types: bool, at_once: bool = False) -> set[str]:
    """Modules that a file imports: those for type checkers only where `types` says so; `at_once`: with the file."""
    found: set[str] = set()
    for node, for_types, later in statements(path):
        if (types or not for_types) and not (at_once and later):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names} & known
            else:
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= named & known or {str(node.module)} & known
    return found


@functools.cache
def imports(types: bool) -> dict[str, set[str]]:
    """Module → modules that it imports."""
    files = product()
    return {module: imports_of(path, files.keys(), types) for module, path in files.items()}


def circles(below: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of modules each of which comes to every other one, and so to itself."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [*below[start]]
        while todo:
            if (module := todo.pop()) not in seen:
                seen.add(module)
                todo += below[module]
        return seen

    all_below = {module: reached(module) for module in below}
    return {
        frozenset(m for m in all_below if m in all_below[module] and module in all_below[m])
        for module in all_below
        if module in all_below[module]
    }


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {frozenset({"b", "c"})}


@pytest.mark.parametrize("types", [False, True])
def test_no_files_import_one_another_in_a_circle(types: bool) -> None:
    assert sum(map(len, imports(types).values())) > 300, "few imports were found"
    assert not circles(imports(types))


def test_the_files_and_folders_of_a_folder_import_one_another_in_one_direction() -> None:
    """A folder counts as one thing: what it is made of imports nothing that imports any of it."""
    for folder in (module for module, path in product().items() if path.name == "__init__.py"):
        inside: dict[str, set[str]] = {}
        for module, found in imports(types=True).items():
            if module.startswith(f"{folder}."):
                others = {part(name, folder) for name in found if name.startswith(f"{folder}.")}
                inside.setdefault(part(module, folder), set()).update(others - {part(module, folder)})
        assert not circles(inside), f"in {folder}: {circles(inside)}"


def part(module: str, folder: str) -> str:
    """What of a folder a module is, or lies in."""
    return module.removeprefix(f"{folder}.").partition(".")[0]
