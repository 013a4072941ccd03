"""What an OSS's network carries: from the interfaces that have the addresses of its NIDs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tarazu.stats.host import PAYLOAD
from tarazu.stats.view import ViewBuilder

from .test_view import ost, report

ASK = (
    "import json, sys; from tarazu.stats import host; print(json.dumps(host.link_bytes_per_s(sys.argv[1:])))"
)


@pytest.fixture(scope="module")
def interfaces() -> list[str]:
    """A shell that has two links of the kernel's 10 Gbit/s, and nothing else."""
    command = ["unshare", "--user", "--map-root-user", "--net"]
    script = (
        "ip link add link0 type veth peer name far0 && ip address add 10.9.0.1/24 dev link0 && ip link set link0 up && "
        "ip link add link1 type veth peer name far1 && ip address add 10.9.1.1/24 dev link1 && ip link set link1 up && "
        "ip link set far0 up && ip link set far1 up && "
        'ip address add 10.9.2.1/24 dev link1 && ip link set lo up && exec "$@"'
    )
    words = [*command, "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces: expected to be allowed to make one")
    return words


def link(interfaces: list[str], *nids: str) -> float:
    done = subprocess.run([*interfaces, sys.executable, "-c", ASK, *nids], capture_output=True, check=True)
    return json.loads(done.stdout)


def test_each_interface_counts_once(interfaces: list[str]) -> None:
    one = 10e9 / 8 * PAYLOAD
    assert link(interfaces, "10.9.0.1@tcp") == pytest.approx(one)
    assert link(interfaces, "10.9.0.1@tcp", "10.9.1.1@tcp1", "10.9.2.1@tcp2") == pytest.approx(2 * one)


@pytest.mark.parametrize("nids", [(), ("127.0.0.1@tcp",), ("10.9.0.9@tcp",), ("17@kfi", "10.9.0.1@tcp")])
def test_what_is_not_known_is_nought(interfaces: list[str], nids: tuple[str, ...]) -> None:
    assert link(interfaces, *nids) == 0


@pytest.mark.parametrize(
    ("said", "believed"),
    [(1e9, 1e9), (0.0, 0.0), (float("inf"), 0.0), (float("nan"), 0.0), (-1.0, 0.0), (2e8, 0.0)],
)
def test_a_link_slower_than_what_it_carries_is_not_believed(said: float, believed: float) -> None:
    views = ViewBuilder(60.0)
    views.update(report("oss1", ost(0), lnet_bytes_per_s=1e9, link_bytes_per_s=said), 100.0)
    (oss,) = views.view("lustre", 100.0).osses
    assert oss.link_bytes_per_s == believed
