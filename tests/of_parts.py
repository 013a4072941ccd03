"""What the tests of parts bring to tests of the core: their levers' cases, messages, readers, commands."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tarazu.part import installed

PARTS = Path(__file__).parent / "parts"
_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
ALL_ARE_HERE = installed().keys() >= _PROJECT["entry-points"]["tarazu.parts"].keys()
"""Else pages may name commands of one that was taken away."""


def brought(name: str, what: str) -> list[Any]:
    """What of each `tests.parts.PART.NAME` that has it."""
    return [getattr(module, what) for module in modules(name) if hasattr(module, what)]


def modules(name: str) -> Iterator[Any]:
    """`tests.parts.PART.NAME`, in its folders too, of each part that is here and has some."""
    for path in sorted(PARTS.rglob(f"{name}.py")):
        yield importlib.import_module(
            ".".join(("tests.parts", *path.relative_to(PARTS).with_suffix("").parts))
        )
