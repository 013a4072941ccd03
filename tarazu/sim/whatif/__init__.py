"""What a job's files would have gained on other OSTs: `tarazu whatif`."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def example() -> Traversable:
    """A real log with one slow OST, as example.txt says."""
    return files(__name__).joinpath("example.darshan")
