"""What a person types on a testbed's nodes: ssh, lctl, lnetctl, systemctl answer there as on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed, down, processes, up
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.routers import client_nid
from tarazu.stats.params import find_exports
from tests.daemons.conftest import patiently


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    made = up(
        tmp_path_factory.mktemp("nodes") / "tb", osss=2, osts_per_oss=2, clients=2, routers=1, interval_s=0.2
    )
    try:
        configure(made)
        yield made
    finally:
        down(made.directory)


def typed(bed: Testbed, text: str, status: int = 0) -> str:
    """In the shell of the first client."""
    env = os.environ | bed.environment()
    env["PATH"] += f":{Path(sys.executable).parent}"
    done = subprocess.run(["sh", "-c", text], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_each_node_has_its_own_parameters_pools_and_state(bed: Testbed) -> None:
    assert typed(bed, "ssh root@oss2 lctl get_param 'obdfilter.*.degraded'").splitlines() == [
        "obdfilter.lustre-OST0002.degraded=0",
        "obdfilter.lustre-OST0003.degraded=0",
    ]
    assert typed(bed, "lctl get_param osc.*OST0001*.max_rpcs_in_flight").endswith("=8\n")
    assert typed(bed, "ssh mds lctl pool_list lustre") == "Pools from lustre:\n"
    for node, said in (("oss1", 2), ("client1", 0)):
        assert typed(bed, f"ssh {node} lctl pool_list lustre", said) == (
            "" if said else "Pools from lustre:\n"
        )
        env = os.environ | bed.environment()
        away = subprocess.run(
            ["ssh", node, "lctl pool_new lustre.good"], env=env, capture_output=True, check=False
        )
        assert (away.returncode, away.stderr[:31]) == (19, b"No device found for name MGS: I")
    assert typed(bed, "ssh router1 lnetctl udsp show") == ""
    assert typed(bed, "ssh oss1 'ssh client2 echo \\$TESTBED_CLIENT; echo $? >&2; exit 7'", 7) == "client2\n"
    assert typed(bed, "ssh oss1 'echo $TESTBED_MOUNT$LD_PRELOAD'") == "\n", "nothing is mounted on a server"
    directories = [
        typed(bed, f"ssh {node} 'echo \"$TARAZU_STATE_DIRECTORY\"'") for node in ("oss1", "client2")
    ]
    assert len(set(directories)) == 2


def test_another_name_goes_by_the_systems_own_ssh(bed: Testbed, tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text('#!/bin/sh\necho "real: $*"\n')
    (tmp_path / "ssh").chmod(0o755)
    assert typed(bed, f"PATH=$PATH:{tmp_path}; PATH={tmp_path}:$PATH; ssh oss9 true") == "real: oss9 true\n"
    path = bed.environment()["PATH"].split(":")
    inside = ":".join([*path[:2], str(tmp_path), *path[2:]])
    assert typed(bed, f"PATH={inside}; ssh oss9 true; ssh oss1 echo here") == "real: oss9 true\nhere\n"


def test_a_drain_by_lctl_keeps_new_files_off_the_ost(bed: Testbed) -> None:
    """`degraded` was a file that nobody read."""
    typed(bed, "ssh oss2 lctl set_param obdfilter.lustre-OST0002.degraded=1")
    patiently(lambda: bed.mds.flags(2)["degraded"])
    typed(bed, 'cd "$TESTBED_MOUNT"; for i in 1 2 3 4 5 6; do : > n.$i; done')
    assert not any(bed.layout(f"n.{i}").osts[0] == (2,) for i in range(1, 7))
    typed(bed, "ssh oss2 lctl set_param obdfilter.lustre-OST0002.degraded=0")
    patiently(lambda: not bed.mds.flags(2)["degraded"])


def test_what_lctl_has_set_is_gone_after_a_power_cut(bed: Testbed) -> None:
    typed(bed, "ssh oss1 lctl set_param obdfilter.lustre-OST0000.degraded=1")
    patiently(lambda: bed.mds.flags(0)["degraded"])
    bed.kill_oss("oss1")
    typed(bed, "ssh oss1 true", 1)
    bed.revive_oss("oss1")
    patiently(lambda: typed(bed, "ssh oss1 lctl get_param obdfilter.*OST0000.degraded").endswith("=0\n"))


def test_a_server_counts_what_each_client_wrote(bed: Testbed) -> None:
    typed(bed, "ssh client2 'head -c 5000000 /dev/zero > $TESTBED_MOUNT/of2'")
    bed.refresh()
    (ost,) = bed.layout("of2").osts[0]
    path = find_exports(bed.oss_root(bed.oss_of_ost[ost]))[f"lustre-OST{ost:04x}", str(client_nid(2))]
    assert path.read_text().splitlines()[-1].split()[6] == "5000000"


def test_a_unit_is_started_as_its_file_says_and_ends(bed: Testbed) -> None:
    (bed.directory / "etc" / "conf.d" / "tune.toml").write_text(
        f"[tune]\ncouncil = 'tcp://127.0.0.1:{processes.free_port()}'\ngroup = 'oss'\n"
    )
    assert typed(bed, "ssh mds systemctl is-active tarazu-council", 3) == "inactive\n"
    typed(bed, "ssh mds systemctl enable --now tarazu-council.service")
    typed(bed, "ssh oss1 systemctl enable --now tarazu-announcer")
    assert typed(bed, "ssh oss1 systemctl is-active tarazu-announcer") == "active\n"
    patiently(lambda: "oss1" in typed(bed, "ssh mds tarazu change tune"))
    typed(bed, "ssh oss1 systemctl reload \"'tarazu-*'\"")
    log = bed.directory / "log" / "tarazu-announcer-oss1.log"
    patiently(lambda: "settings read again" in log.read_text())
    typed(bed, "tarazu sim testbed kill $TESTBED oss1")
    typed(bed, "ssh oss1 systemctl is-active tarazu-announcer", 1)
    typed(bed, "tarazu sim testbed revive $TESTBED oss1")
    assert typed(bed, "ssh oss1 systemctl is-active tarazu-announcer") == "active\n"
    typed(bed, "ssh oss1 systemctl disable --now tarazu-announcer; ssh mds systemctl stop tarazu-council")
    assert "inactive (dead)" in typed(bed, "ssh oss1 systemctl status tarazu-announcer", 3)
    assert typed(bed, "ssh oss1 systemctl start tarazu-nonsense", 5) == ""
