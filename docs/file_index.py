"""The site's map of the sources: each folder in one line, and where its tests are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1]
HEAD = """# Folders and their tests

For contributors: what each folder of the sources is for, and in brackets the tests to run when you change it
(`.venv/bin/python -m pytest -q FOLDER`). Made by `make docs` from the packages' docstrings. How the folders belong
together: [architecture](architecture.md). What a file is about is its own first sentence.
"""
PRELOAD = {
    "preload": "`libtarazu.so` and `libtarazu_core.so`, in C; the folders below use one another downwards only",
    "preload/hooks": "the functions of libc that are replaced",
    "preload/life": "start, fork and exit of a process",
    "preload/place": "a file gets its planned layout, or why it does not",
    "preload/record": "what a process created, written to its spool",
    "preload/names": "paths, directories, counters: under which name a file is known",
    "preload/process": "what one process knows: settings, mounts, stop file, its files",
    "preload/core": "templates, hashes, the placement map, layouts as bytes; the Python side uses it too",
    "preload/base": "locks, clocks, real symbols, text",
}
PACKAGING = {"packaging": "deb, rpm, tarball, man pages, and the test of a first day on a bare machine"}
TESTS_ONLY = {
    "tests/loop": "the whole loop: real daemons on the testbed",
    "tests/lustre": "the same risks on a real Lustre mount (`TARAZU_LUSTRE_MOUNT`)",
    "tests/chaos": "faults under load, with invariants",
    "tests/hostile": "malformed messages and files",
    "tests/fuzz": "the C parsers, fuzzed",
    "tests/sanitize": "the library under sanitizers and valgrind",
    "tests/benchmarks": "speed and growth (`make bench-…`)",
    "tests/docs": "every command of the docs, typed",
}
TITLES = {
    "tarazu": "The product",
    "tarazu/daemons": "The daemons",
    "tarazu/sim": "Simulator, testbed and studies",
}
OF_PRELOAD, OF_PACKAGING, OF_TESTBED = "tests/preload", "tests/packaging", "tests/testbed"


def page() -> str:
    """The whole page."""
    rooms: dict[str, list[str]] = {title: [] for title in TITLES}
    for folder in _packages(SOURCE / "tarazu"):
        name = str(folder.relative_to(SOURCE))
        rooms[max((top for top in TITLES if f"{name}/".startswith(f"{top}/")), key=len)].append(
            _row(name, _about(folder), _tests(name))
        )
    parts = [HEAD, *(_list(TITLES[top], rows) for top, rows in rooms.items())]
    parts.append(_list("The library", [_row(name, text, OF_PRELOAD) for name, text in PRELOAD.items()]))
    parts.append(_list("Packages", [_row(name, text, OF_PACKAGING) for name, text in PACKAGING.items()]))
    parts.append(_list("Tests of no single folder", [_row(*each) for each in TESTS_ONLY.items()]))
    return "\n".join(parts)


def _packages(top: Path) -> Iterator[Path]:
    for init in sorted(top.rglob("__init__.py"), key=lambda path: path.parent.parts):
        if "__pycache__" not in init.parts:
            yield init.parent


def _about(folder: Path) -> str:
    """The first sentence of its docstring."""
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")


def _tests(name: str) -> str:
    """The nearest folder of tests: that of the same name, else that of the folder above."""
    inside = Path(name).relative_to("tarazu")
    if inside.parts[:2] == ("sim", "testbed"):
        return OF_TESTBED
    for place in (inside, *inside.parents):
        if list((SOURCE / "tests" / place).rglob("test_*.py")):
            return str(Path("tests") / place)
    return ""


def _row(name: str, about: str, tests: str = "") -> str:
    return f"- `{name}`" + (f" (`{tests}`)" if tests else "") + f": {about}"


def _list(title: str, rows: list[str]) -> str:
    return "\n".join([f"## {title}", "", *rows, ""])
