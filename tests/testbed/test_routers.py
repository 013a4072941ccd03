"""LNet routers on the testbed: the stand-in for lnetctl, what routers count, and the real daemons that set rules."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed, routers
from tarazu.sim.testbed.daemons import LNETCTL
from tarazu.stats import lnet
from tarazu.stats.collector import Collector
from tarazu.wire.reports import RouterLoad, RouterState

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "control" / "lnet-routes-udsp.txt"
MIB = 1 << 20
FOREIGN = ("--src", "tcp", "--priority", "0")


def lnetctl(root: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-I", "-S", str(LNETCTL), str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_stand_in_answers_as_lnetctl_did(tmp_path: Path) -> None:
    """Every captured command on rules, in order."""
    pairs = re.findall(
        r"^# lnetctl (udsp .*)\n((?:[^#\n].*\n|\n)*)# rc (\d+)$", CAPTURED.read_text(), re.MULTILINE
    )
    asked = [(words, text, int(status)) for words, text, status in pairs if "--help" not in words]
    assert len(asked) == 13
    assert "not be loaded" in lnetctl(tmp_path, "udsp", "show")[1]
    (tmp_path / "sys/kernel/debug/lnet").mkdir(parents=True)
    for words, text, status in asked:
        assert lnetctl(tmp_path, *words.split()) == (status, text), words


@pytest.fixture(scope="module")
def routed(memory_directory: Path) -> Iterator[Testbed]:
    """One server of two OSTs, two clients behind two routers."""
    from tarazu.sim.testbed import down, up

    bed = up(memory_directory / "routed", osss=1, osts_per_oss=2, clients=2, routers=2, interval_s=60)
    yield bed
    down(bed.directory)


def moved(bed: Testbed, client: int = 0, mib: int = 134) -> tuple[int, int]:
    """MiB by each router, of so many that a client writes now."""

    def lengths() -> list[int]:
        bed.refresh()
        texts = [(bed.router_root(r) / "sys/kernel/debug/lnet/stats").read_text() for r in bed.router_names]
        return [lnet.parse(text).route_length for text in texts]

    before = lengths()
    path = bed.client_mount(client) / f"f{len(list(bed.mount.iterdir()))}"
    program = ["dd", "if=/dev/zero", f"of={path}", "bs=2M", f"count={mib // 2}"]
    assert bed.exec(client, program, capture_output=True).returncode == 0
    first, second = ((now - was) // MIB for was, now in zip(before, lengths(), strict=True))
    return first, second


def test_bytes_follow_the_servers_rules(routed: Testbed) -> None:
    """The figures measured on Lustre 2.17.57 (lnet-routers-measured.txt)."""
    root, (first, second) = routed.oss_root("oss1"), (str(routers.router_nid(n)) for n in (1, 2))
    assert moved(routed) == (67, 67)
    lnetctl(root, "udsp", "add", "--dst", str(routers.client_nid(1)), "--rte", first)
    assert (moved(routed), moved(routed, client=1)) == ((134, 0), (67, 67))
    lnetctl(root, "udsp", "del", "--idx", "0")
    lnetctl(root, "udsp", "add", "--dst", "10.77.64.[1-9]@tcp1", "--rte", second)
    assert moved(routed) == (0, 134)
    routed.kill_router("router2", notice_s=60.0)
    assert moved(routed) == (0, 134), "it is used until the servers notice"
    routed.kill_router("router2")
    assert moved(routed) == (134, 0)
    states = Collector(root, "oss1").collect(0.0).routes
    assert states == (RouterState(first, True, "tcp1"), RouterState(second, False, "tcp1"))
    routed.revive_router("router2")
    lnetctl(root, "udsp", "del", "--idx", "0")
    assert moved(routed) == (67, 67)
    load = Collector(routed.router_root("router1"), "router1").collect(0.0).router
    assert load == RouterLoad((first, f"{first}1"))
