"""LNet routers on the testbed: the stand-in for lnetctl, what routers count, and the real daemons that set rules."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.sim.testbed import Testbed, processes, routers
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import LNETCTL, daemon_commands
from tarazu.stats import lnet
from tarazu.stats.collector import Collector
from tarazu.wire.messages import StatusReply, StatusRequest, StepEnded, StepNodes, StepProfile
from tarazu.wire.reports import RouterLoad, RouterState
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S, patiently

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "control" / "lnet-routes-udsp.txt"
MIB = 1 << 20
FOREIGN = ("--src", "tcp", "--priority", "0")
BEST_WITH_ONE = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8)))


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


class Rules:
    """mdsd, and what sets rules on the server, as processes; a client that tells mdsd of job steps."""

    def __init__(self, bed: Testbed) -> None:
        self.bed = bed
        self.transport = ZmqTransport(curve_for("client", bed.directory / "etc" / "keys"))
        self.client = self.transport.requester(f"tcp://127.0.0.1:{bed.config.ports['allocation']}")
        self.client.resend_s = 0.1
        self.number = 0

    def start(self, *names: str) -> None:
        processes.start(self.bed.directory, [d for d in daemon_commands(self.bed) if d.name in names])

    def signal(self, name: str, number: signal.Signals) -> None:
        pid = processes.running(self.bed.directory, name)
        assert pid is not None
        os.kill(pid, number)
        patiently(lambda: processes.running(self.bed.directory, name) is None)

    def tell(self, id: str) -> None:
        self._ask(
            StepNodes(id, self._id(), id, 1000, "lustre", str(routers.client_nid(1)), 60.0, BEST_WITH_ONE)
        )

    def end(self, id: str) -> None:
        self._ask(StepEnded(id, self._id()))

    def status(self) -> dict[str, Any]:
        reply = self._ask(StatusRequest(self._id()))
        assert isinstance(reply, StatusReply)
        return reply.status

    def _id(self) -> str:
        self.number += 1
        return f"m{self.number}"

    def _ask(self, message: Any) -> Any:
        return self.client.request(message, PATIENCE_S)

    def set_now(self) -> list[str]:
        """Routers of the rules that are set, beside the foreign one, which must be there."""
        first, *others = routers.rules_of(self.bed.oss_root("oss1"))
        assert (first.src, first.priority) == ("tcp", "0")
        assert all(rule.dst == str(routers.client_nid(1)) for rule in others)
        return [rule.rte for rule in others]

    def log(self) -> str:
        return (self.bed.directory / "log" / "tarazu-routers-oss1.log").read_text()

    @staticmethod
    def number_of(router: str) -> int:
        return [str(routers.router_nid(n)) for n in (1, 2)].index(router)

    def said(self, text: str) -> None:
        """Waits until it has: what is set changes a moment before."""
        patiently(lambda: text in self.log())

    def close(self) -> None:
        self.transport.close()


@pytest.fixture
def rules(routed: Testbed) -> Iterator[Rules]:
    own = {"routers": "apply"}
    configure(
        routed,
        {
            "forwarding": own,
            "run": {"alive_s": 0.1},
            "mdsd": {"cpu_limit": 1.0},
            "allocate": {"solver": "networkx"},
        },
    )
    lnetctl(routed.oss_root("oss1"), "udsp", "add", *FOREIGN)
    found = Rules(routed)
    yield found
    found.close()
    processes.stop(routed.directory, except_names=["testbed-server"])
    lnetctl(routed.oss_root("oss1"), "udsp", "del", "--idx", "0")


def test_the_real_daemons_set_rules_and_take_them_back(routed: Testbed, rules: Rules) -> None:
    name = "tarazu-routers-oss1"
    rules.start("tarazu-mdsd", name, "tarazu-ossd-router1")
    rules.tell("a")
    (router,) = patiently(rules.set_now)
    number = rules.number_of(router)
    assert moved(routed)[number] == 134 and moved(routed, client=1) == (67, 67)

    loads = patiently(lambda: {n: o["router"] for n, o in rules.status()["osses"].items()})
    own = [str(routers.router_nid(1, net)) for net in ("tcp", "tcp1")]
    assert loads == {"router1": {"nids": own, "bytes_per_s": 0.0, "messages_per_s": 0.0}}
    processes.kill(routed.directory, "tarazu-ossd-router1")

    rules.signal(name, signal.SIGKILL)
    assert rules.set_now() == [router], "a killed process takes nothing back"
    rules.start(name)
    rules.said(": left by a former run")
    patiently(lambda: rules.log().count("Z set routers") == 2)

    rules.end("a")
    patiently(lambda: not rules.set_now())
    rules.said(": mdsd no longer plans it")
    assert moved(routed) == (67, 67)

    rules.tell("b")
    patiently(rules.set_now)
    rules.signal(name, signal.SIGTERM)
    assert not rules.set_now() and "tarazu-ossd --routers ends" in rules.log()

    rules.start(name)
    (router,) = patiently(rules.set_now)
    number = rules.number_of(router)
    routed.kill_router(f"router{number + 1}")
    patiently(lambda: not rules.set_now())
    rules.said(f": {router} is down")
    assert moved(routed)[1 - number] == 134
    routed.revive_router(f"router{number + 1}")
    assert "Traceback" not in rules.log()


@pytest.mark.long
def test_rules_of_a_mdsd_that_has_died_are_taken_back_and_come_again(rules: Rules) -> None:
    rules.start("tarazu-mdsd", "tarazu-routers-oss1")
    rules.tell("a")
    patiently(rules.set_now)
    rules.signal("tarazu-mdsd", signal.SIGKILL)
    patiently(lambda: not rules.set_now())
    rules.said(": mdsd is silent")
    rules.start("tarazu-mdsd")
    rules.tell("a")
    patiently(rules.set_now)
