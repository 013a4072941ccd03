"""The real daemons on a testbed: mdsd plans routers for a step, and the server's rules follow."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.routers.messages import StepNodes
from tarazu.sim.testbed import Testbed, processes, routers
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import daemon_commands
from tarazu.wire.messages import PartRequest, StatusReply, StatusRequest
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S, patiently
from tests.testbed.test_routers import lnetctl, moved

FOREIGN = ("--src", "tcp", "--priority", "0")
BEST_WITH_ONE = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8)))


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """One server of two OSTs, two clients behind two routers."""
    from tarazu.sim.testbed import down, up

    bed = up(
        tmp_path_factory.mktemp("bed") / "routed", osss=1, osts_per_oss=2, clients=2, routers=2, interval_s=60
    )
    yield bed
    down(bed.directory)


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
        self._say(StepNodes(id, id, "lustre", str(routers.client_nid(1)), 60.0, BEST_WITH_ONE))

    def end(self, id: str) -> None:
        self._say(StepNodes(id, id, "lustre", "", ended=True))

    def _say(self, message: StepNodes) -> None:
        self._ask(PartRequest(self._id(), "routers", msgspec.msgpack.encode(message), 1000))

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
        return (self.bed.directory / "log" / "tarazu-ossd-routers-oss1.log").read_text()

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
    configure(
        routed,
        {
            "part.routers": {"mode": "apply"},
            "run": {"alive_s": 0.1},
            "mdsd": {"cpu_limit": 1.0},
        },
    )
    lnetctl(routed.oss_root("oss1"), "udsp", "add", *FOREIGN)
    found = Rules(routed)
    yield found
    found.close()
    processes.stop(routed.directory, except_names=["testbed-server"])
    lnetctl(routed.oss_root("oss1"), "udsp", "del", "--idx", "0")


def test_the_real_daemons_set_rules_and_take_them_back(routed: Testbed, rules: Rules) -> None:
    name = "tarazu-ossd-routers-oss1"
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
    rules.start("tarazu-mdsd", "tarazu-ossd-routers-oss1")
    rules.tell("a")
    patiently(rules.set_now)
    rules.signal("tarazu-mdsd", signal.SIGKILL)
    patiently(lambda: not rules.set_now())
    rules.said(": mdsd is silent")
    rules.start("tarazu-mdsd")
    rules.tell("a")
    patiently(rules.set_now)
