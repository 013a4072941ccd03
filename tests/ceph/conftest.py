"""A cluster with three data pools on OSDs of three device classes, mounted; skipped where Ceph is not installed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ceph.cluster import Cluster, why_not

POOLS = {"first": "hdd", "second": "ssd", "third": "nvme"}
"""The first is the file system's default."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Whoever makes an OSD slow, a pool full, … puts it right again."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    directory = Path(tempfile.mkdtemp(prefix="ceph-"))
    directory.chmod(0o755)
    made = Cluster(directory, POOLS)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def mount(cluster: Cluster) -> Path:
    """Of the whole file system, for all users."""
    return cluster.mount(cluster.directory / "mnt")
