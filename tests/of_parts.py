"""What the tests of parts bring to tests of the core: their levers' cases, their messages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parent / "parts"


def modules(name: str) -> Iterator[Any]:
    """`tests.parts.PART.NAME` of each part that is here and has one."""
    for path in sorted(PARTS.glob(f"*/{name}.py")):
        yield importlib.import_module(f"tests.parts.{path.parent.name}.{name}")
