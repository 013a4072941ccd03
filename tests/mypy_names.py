"""Plugin of mypy: `daemons/` and `sim/` are imported as tarazu.daemons and tarazu.sim, for so they are installed.

mypy finds a module by its path only. So each of theirs gets a stub of the installed name below build/mypy that hands on
what the file itself says; the file is checked where it lies.
"""

from __future__ import annotations

from pathlib import Path

from mypy.plugin import Plugin

ROOT = Path(__file__).parents[1]
ROOMS = ("daemons", "sim")
STUBS = ROOT / "build" / "mypy" / "tarazu"


def plugin(version: str) -> type[Plugin]:
    """mypy calls it before it looks for any module."""
    modules = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    for module in modules:
        parts = module.parent.parts if module.stem == "__init__" else module.with_suffix("").parts
        _write((STUBS / module).with_suffix(".pyi"), f"from {'.'.join(parts)} import *\n")
    for stub in STUBS.rglob("*.pyi"):
        if stub.relative_to(STUBS).with_suffix(".py") not in modules:
            stub.unlink()
    return Plugin


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
