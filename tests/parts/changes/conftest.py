"""The case of each lever, on a system of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.parts.changes import engine

from .case import Case
from .cases import CASES

MEMORY = "/dev/shm"


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """In this process; whatever is in force is looked up in each round."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        made = CASES[request.param](Path(directory))
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(engine, "LOOK_S", 0.0)
        yield made
