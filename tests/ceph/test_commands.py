"""What commands say on CephFS, and directories and users for whom a pool is not to be chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.filesystem import ceph
from tarazu.plan.left_to_lustre import default_layout, names_osts
from tarazu.stats.client import Mount
from tests.ceph.cluster import Cluster
from tests.ceph.site import Site

pytestmark = [pytest.mark.ceph, pytest.mark.slow]


def test_pools_are_named_in_status_top_and_doctor(site: Site, cluster: Cluster) -> None:
    label = "pool second (b, osd.2)"
    assert label in site.tarazu("status").stdout
    assert "cephfs-OST000" in site.tarazu("top", "--once").stdout
    reader = {"CEPH_CONF": str(cluster.conf), "CEPH_ARGS": f"--keyring {cluster.reader_keyring}"}
    doctor = site.tarazu("doctor", env=reader).stdout
    assert f"mount: cephfs on {site.mount}" in doctor
    assert "pools: 3 data pools can be reported" in doctor
    without = reader | {"CEPH_ARGS": "--keyring /nonexistent"}
    assert "pools: not reported from here" in site.tarazu("doctor", env=without).stdout
    once = subprocess.run(
        [Path(sys.executable).with_name("tarazu-ossd"), "--config", site.config, "--once"],
        env={**os.environ, **reader},
        capture_output=True,
        text=True,
        check=True,
    )
    assert label in once.stdout


def test_a_directory_with_a_layout_of_its_own_is_a_users_choice(mount: Path) -> None:
    below = mount / "own" / "below"
    below.mkdir(parents=True)
    assert ceph.directory_default(str(below)) == b""
    os.setxattr(mount / "own", "ceph.dir.layout.pool", b"third")
    blob = ceph.directory_default(str(below))
    assert names_osts(blob)
    assert default_layout(blob)
    assert ceph.directory_default(str(mount)) == b""


@pytest.mark.parametrize(("may", "wrong"), [("rwp", {"second"}), ("rw", {"first", "second", "third"})])
def test_a_pool_that_a_user_cannot_choose_is_found_out(
    cluster: Cluster, mount: Path, may: str, wrong: set[str]
) -> None:
    """Without `p` among its rights a client sets no layouts at all."""
    caps = ["mon", "allow r", "mds", f"allow {may}", "osd", "allow rw pool=first, allow rw pool=third"]
    (entry,) = cluster.ceph("auth get-or-create", entity=f"client.{may}", caps=caps)
    keyring = cluster.directory / f"{may}.keyring"
    keyring.write_text(f"[client.{may}]\n\tkey = {entry['key']}\n")
    where = cluster.mount(cluster.directory / may, "--id", may, "--keyring", str(keyring))
    try:
        (where / may).mkdir()
        mounts = [Mount(str(where), "cephfs", kind="ceph")]
        ids = cluster.pool_ids()
        refused = ceph.refused_targets(mounts, [f"/{may}/new/file"], {*ids.values(), 4711})
        assert sorted(refused) == sorted([*(ids[name] for name in wrong), 4711]), refused
        assert list((where / may).iterdir()) == []
    finally:
        cluster.unmount(where)
