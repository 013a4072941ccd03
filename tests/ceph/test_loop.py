"""An unmodified program on CephFS: recorded, predicted, placed, explained; a pool that is slow or full is avoided."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tarazu.left import COSTS_MORE, LEFT_TO_LUSTRE
from tarazu.ost_state import Verdict
from tests.ceph.cluster import Cluster
from tests.ceph.site import Site

pytestmark = [pytest.mark.ceph, pytest.mark.slow]

PROGRAM = """
import os, sys
directory, files, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
children = []
for n in range(files):
    child = os.fork()
    if not child:
        with open(f"{directory}/data.{n}", "wb") as file:
            for at in range(size >> 20):
                file.write(bytes([n % 251]) * (1 << 20))
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children) != 0)
"""
FILES, BYTES = 9, 8 << 20


def program(directory: Path) -> list[object]:
    return [sys.executable, "-c", PROGRAM, directory, FILES, BYTES]


def run(site: Site, app: str) -> dict[str, str]:
    """File → its pool."""
    directory = site.mount / app
    directory.mkdir(exist_ok=True)
    for file in directory.iterdir():
        file.unlink()
    site.run(*program(directory), app=app)
    for n in range(FILES):
        assert (directory / f"data.{n}").read_bytes() == bytes([n]) * BYTES
    return {file.name: site.pool_of(file) for file in sorted(directory.iterdir())}


def test_the_second_run_lies_in_all_pools(site: Site) -> None:
    assert set(run(site, "even").values()) == {"first"}
    pools = run(site, "even")
    assert site.outcomes("even") == {"hit": FILES}, site.run_log()
    shares = [list(pools.values()).count(pool) for pool in site.cluster.pools]
    assert shares == [3, 3, 3]
    explained = site.tarazu("job", "explain", site.mount / "even" / "data.0")
    assert "history" in explained.stdout or "planned layout" in explained.stdout, explained
    assert f"pool={pools['data.0']}" in explained.stdout


def test_a_slow_pool_is_avoided(site: Site, cluster: Cluster) -> None:
    """Its OSD runs a twentieth of the time; that is seen by what others write there."""
    run(site, "slow")
    slow = cluster.pool_ids()["second"]
    (osd,) = cluster.osds[cluster.pools["second"]]
    with cluster.slowed(osd):
        until = time.monotonic() + 90
        verdict = None
        while verdict is not Verdict.SICK and time.monotonic() < until:
            for pool in cluster.pools:
                write(site.mount / f"load.{pool}", cluster.pool_ids()[pool])
            time.sleep(1.0)
            view = site.view()
            verdict = next(o.verdict for o in view.osts if o.index == slow) if view else None
        assert verdict is Verdict.SICK, view
        pools = run(site, "slow")
    assert list(pools.values()).count("second") <= 1
    assert site.outcomes("slow") == {"hit": FILES}, site.run_log()


def test_a_pool_at_its_quota_is_avoided(site: Site, cluster: Cluster) -> None:
    run(site, "full")
    third = cluster.pool_ids()["third"]
    inside = site.mount / "inside"
    write(inside, third, 1, keep=True)
    cluster.ceph("osd pool set-quota", pool="third", field="max_bytes", val="1")
    try:
        site.wait(lambda view: any(o.index == third and o.verdict is Verdict.FULL for o in view.osts))
        assert "third" not in run(site, "full").values()
    finally:
        cluster.ceph("osd pool set-quota", pool="third", field="max_bytes", val="0")
        inside.unlink()
    site.wait(lambda view: any(o.index == third and o.verdict is not Verdict.FULL for o in view.osts))


SMALL = """
import os, sys, time
directory, files = sys.argv[1], int(sys.argv[2])
began = time.monotonic()
for n in range(files):
    with open(f"{directory}/small.{n}", "wb") as file:
        file.write(bytes([n % 251]) * 4096)
print(time.monotonic() - began)
"""
SMALL_FILES = 100


def small(directory: Path, files: int = SMALL_FILES) -> list[object]:
    """Files of 4 KiB, one after the other; it prints in how many seconds."""
    return [sys.executable, "-c", SMALL, directory, files]


def test_small_files_stay_in_the_default_pool_and_large_ones_beside_them_are_placed(
    cluster: Cluster, mount: Path, tmp_path: Path
) -> None:
    """Also where the site wants all files placed (`layout.min_size`): to place one takes as long as writing it."""
    site = Site(cluster, mount, tmp_path / "site", {"layout": {"min_size": 0}})
    directory = mount / "small"
    directory.mkdir()
    both = [sys.executable, "-c", f"{SMALL}\nsys.argv[2:] = ['{FILES}', '{BYTES}']\n{PROGRAM}"]
    try:
        for _ in range(2):
            for file in directory.iterdir():
                file.unlink()
            site.run(*both, directory, SMALL_FILES, app="small")
        assert site.outcomes("small") == {"hit": FILES, "miss": SMALL_FILES}, site.run_log()
        assert {site.pool_of(directory / f"small.{n}") for n in range(SMALL_FILES)} == {"first"}
        pools = [site.pool_of(directory / f"data.{n}") for n in range(FILES)]
        assert all(2 <= pools.count(pool) <= 4 for pool in cluster.pools)
        assert COSTS_MORE in site.tarazu("job", "explain", directory / "small.0").stdout
        site.run(*small(directory), app="only")
        site.run(*small(directory), app="only")
        assert f"plan={LEFT_TO_LUSTRE!r} because={COSTS_MORE!r}" in site.run_log()
    finally:
        site.end()


def write(path: Path, pool: int, mebibytes: int = 32, keep: bool = False) -> None:
    """As others do, who choose their pool themselves; the file goes at once unless it is to be kept."""
    path.unlink(missing_ok=True)
    path.touch()
    os.setxattr(path, "ceph.file.layout.pool", str(pool).encode())
    with path.open("wb") as file:
        for _ in range(mebibytes):
            file.write(b"x" * (1 << 20))
        file.flush()
        os.fdatasync(file.fileno())
    if not keep:
        path.unlink()
