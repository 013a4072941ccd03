"""A cluster with three data pools on OSDs of three device classes, mounted; skipped where Ceph is not installed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ceph.cluster import Cluster, why_not
from tests.ceph.site import Site

POOLS = {"first": "a", "second": "b", "third": "c"}
"""The first is the file system's default. Classes of which nobody knows the kind are compared with one another."""


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


@pytest.fixture(scope="module")
def site(cluster: Cluster, mount: Path) -> Iterator[Site]:
    """With daemons of the module's own."""
    directory = Path(tempfile.mkdtemp(prefix="site-"))
    made = Site(cluster, mount, directory)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(directory)
