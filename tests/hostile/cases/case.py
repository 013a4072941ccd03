"""What a case is, and how most make their file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[2] / "data"


class Case(NamedTuple):
    name: str
    sites: tuple[str, ...]
    """Of `sites.py`: what reading the whole file comes through."""
    make: Callable[[Path], Path]
    """A whole file in this directory."""
    read: Callable[[Path], object]
    """As the product does. May raise a TarazuError."""
    places: int = 0
    """Of a reader that is slow: so many bytes are changed in the short form."""


def text(name: str, text: str, mode: int = 0o644) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    return make


def copy(source: Path) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        path = directory / source.name
        path.write_bytes(source.read_bytes())
        return path

    return make
