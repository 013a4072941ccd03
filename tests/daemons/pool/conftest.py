"""The shared testbed, whose pools end with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tarazu.sim.testbed import Testbed
from tests.testbed.conftest import bed, memory_directory, shared_bed  # noqa: F401


@pytest.fixture
def pool_bed(bed: Testbed) -> Iterator[Testbed]:  # noqa: F811
    yield bed
    bed.mds.destroy_pool("good")
