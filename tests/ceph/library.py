"""Programs under `libtarazu.so` on a mount of CephFS, with a placement map."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarazu import native
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import MapRow, write_map
from tests.ceph.cluster import Cluster
from tests.map_rows import map_row
from tests.preload.conftest import HASH_KEY, Runs

UNMANAGED, HIT, LATE, MISS, REFUSED, ADVISED, SKIPPED, RACED = range(8)
FS = "cephfs"
NEW = os.O_CREAT | os.O_RDWR
NOBODY = 65534
POOL = "ceph.file.layout.pool"
_number = itertools.count()


class OnCeph(Runs):
    """In a directory of its own. `mount` is what the library is told to be the file system's mount."""

    def __init__(self, cluster: Cluster, directory: Path, work: Path) -> None:
        super().__init__(directory, work)
        self.cluster = cluster
        self.pools = cluster.pool_ids()
        self.map_directory = work / "maps"
        self.map_directory.mkdir()
        write_control(self.map_directory)
        self.generation = 0
        self.environment = {
            "TARAZU_MOUNTS": f"{directory}={FS}@ceph",
            "TARAZU_MAP": str(self.map_directory),
            "TARAZU_MODE": "place",
        }

    def row(self, key: str, pool: str = "third", **others: Any) -> MapRow:
        return map_row(key, (self.pools[pool],), fs_name=FS, **others)

    def map(self, *rows: MapRow) -> None:
        self.generation += 1
        write_map(
            self.map_directory / f"map.{self.generation}",
            generation=self.generation,
            hash_key=HASH_KEY,
            ost_counts={FS: 1 + max(o for row in rows for of in row.osts for o in of)},
            rows=rows,
        )
        announce(self.map_directory, self.generation)

    def pool(self, name: str) -> str:
        """In which a file lies."""
        return os.getxattr(self.mount / name, POOL).decode()

    def recorded(self, key: str) -> int:
        """The pool in a file's record."""
        (component,) = native.decode_lov(self.create(key).layout).components
        (pool,) = component.osts
        return pool


class Seen(NamedTuple):
    """All that is left of a run for its user."""

    status: int
    output: str
    errors: str
    mode: int | None
    content: bytes | None


@pytest.fixture
def on_ceph(cluster: Cluster, mount: Path, tmp_path: Path) -> OnCeph:
    return made(cluster, mount, tmp_path)


def made(cluster: Cluster, mount: Path, work: Path) -> OnCeph:
    """Everybody can make files there."""
    directory = mount / f"d{os.getpid()}.{next(_number)}"
    directory.mkdir()
    directory.chmod(0o777)
    for place in (work, *list(work.parents)[:3]):
        place.chmod(place.stat().st_mode | 0o011)
    return OnCeph(cluster, directory, work)


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[Callable[..., Path]]:
    """Mounts by a client with rights of its own."""
    mounted: list[Path] = []

    def mount(name: str, mds: str, osd: str) -> Path:
        caps = ["mon", "allow r", "mds", mds, "osd", osd]
        (made,) = cluster.ceph("auth get-or-create", entity=f"client.{name}", caps=caps)
        keyring = cluster.directory / f"keyring.{name}"
        keyring.write_text(f"[client.{name}]\n\tkey = {made['key']}\n")
        where = cluster.mount(cluster.directory / f"mnt.{name}", "--id", name, "--keyring", str(keyring))
        mounted.append(where)
        return where

    yield mount
    for where in mounted:
        cluster.unmount(where)
