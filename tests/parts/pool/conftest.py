"""The shared testbed, whose pools end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.parts.changes import engine
from tarazu.sim.testbed import Testbed
from tests.testbed.conftest import bed, memory_directory, shared_bed  # noqa: F401

from .case import Site


@pytest.fixture
def pool_bed(bed: Testbed) -> Iterator[Testbed]:  # noqa: F811
    yield bed
    bed.set_pool_delay(0.0)
    bed.mds.destroy_pool("good")


@pytest.fixture
def site(pool_bed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    for name, value in pool_bed.node_environment("mds").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "LOOK_S", 0.0)
    return Site(pool_bed, tmp_path)
