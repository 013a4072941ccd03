"""Scenario files that come with tarazu, each a start for one's own."""

from __future__ import annotations

from importlib.resources import files

from tarazu.errors import BadInput


def names() -> tuple[str, ...]:
    """`quick` first, for it is where one begins."""
    examples = sorted(
        path.name.removesuffix(".toml") for path in files(__name__).iterdir() if path.name.endswith(".toml")
    )
    return ("quick", *(name for name in examples if name != "quick"))


def text(name: str) -> str:
    """The file of that name. Raises BadInput."""
    if name not in names():
        raise BadInput("example", f"one of {', '.join(names())}", name)
    return files(__name__).joinpath(f"{name}.toml").read_text()


def about(name: str) -> str:
    """Its first line."""
    return text(name).splitlines()[0].lstrip("# ")
