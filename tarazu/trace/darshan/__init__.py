"""The one reader of Darshan logs: `read` makes a `log`, `gaps` says what it cannot tell, `imports` learns from it."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def example() -> Traversable:
    """A real log with one slow OST, as example.txt says."""
    return files(__name__).joinpath("example.darshan")
