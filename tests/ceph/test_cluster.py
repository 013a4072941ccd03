"""The cluster of these tests does what the rest of them relies on."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from tarazu.filesystem.rados import Rados, RadosError
from tests.ceph.cluster import READER, Cluster

pytestmark = [pytest.mark.ceph, pytest.mark.slow]


def test_a_new_file_takes_a_pool_by_its_id_and_keeps_it_once_it_has_data(
    cluster: Cluster, mount: Path
) -> None:
    path = mount / "placed"
    path.touch()
    ids = cluster.pool_ids()
    os.setxattr(path, "ceph.file.layout.pool", str(ids["third"]).encode())
    path.write_bytes(b"x" * 5_000_000)
    assert os.getxattr(path, "ceph.file.layout.pool") == b"third"
    with pytest.raises(OSError) as refused:
        os.setxattr(path, "ceph.file.layout.pool", str(ids["second"]).encode())
    assert refused.value.errno == errno.ENOTEMPTY
    assert path.read_bytes() == b"x" * 5_000_000


def test_a_pool_that_does_not_exist_is_refused(mount: Path) -> None:
    path = mount / "nowhere"
    path.touch()
    with pytest.raises(OSError) as refused:
        os.setxattr(path, "ceph.file.layout.pool", b"4711")
    assert refused.value.errno == errno.EINVAL


def test_monitors_that_are_silent_are_not_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEPH_ARGS", f"--keyring {cluster.reader_keyring}")
    rados = Rados(READER, str(cluster.conf), patience_s=2.0)
    try:
        with cluster.silent_monitor():
            for ask in (lambda: rados.command("osd dump"), lambda: Rados(READER, str(cluster.conf), 2.0)):
                began = time.monotonic()
                with pytest.raises(RadosError, match="timed out"):
                    ask()
                assert time.monotonic() - began < 20
        assert rados.command("osd dump")["pools"]
    finally:
        rados.close()


def test_an_answer_that_is_too_long_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.filesystem.rados.ANSWER_BYTES", 10)
    with pytest.raises(RadosError, match=r"ceph osd dump: expected an answer of at most 10 bytes, found \d+"):
        cluster.ceph("osd dump")


def test_a_client_that_may_only_read_asks_and_changes_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEPH_ARGS", f"--keyring {cluster.reader_keyring}")
    rados = Rados(READER, str(cluster.conf))
    try:
        assert {pool["pool_name"] for pool in rados.command("osd dump")["pools"]} > set(cluster.pools)
        assert {osd["id"] for osd in rados.command("osd perf")["osdstats"]["osd_perf_infos"]} == {0, 1, 2, 3}
        with pytest.raises(RadosError, match="ceph osd set: access denied"):
            rados.command("osd set", key="noout")
    finally:
        rados.close()
