"""Which routers running jobs get, at the real mdsd: rules for their nodes, rights, the end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.part import StepFacts
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.routers.messages import RouterRules, RulesRequest, StepNodes
from tarazu.parts.routers.run import NodeTelling
from tarazu.parts.routers.settings import Routers
from tarazu.run.parts import tell
from tarazu.run.plan.reports import StepReports
from tarazu.wire import keys, local
from tarazu.wire.messages import Acknowledged, PartReply, PartRequest
from tarazu.wire.reports import RouterState
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S, Site, patiently

BEST_WITH_ONE = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8), (4, 2e8)))
ROUTERS = tuple(RouterState(f"10.0.0.{n}@tcp", True, "tcp1") for n in (11, 12))
NODES = "10.77.0.[31-34]@tcp1"


class Routed:
    """A mdsd that is told of nodes, and an OSS that asks."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.client = site.client()
        transport = ZmqTransport(curve_for("oss", site.keys))
        site.transports.append(transport)
        self.oss = transport.requester(site.requests)
        self.number = 0

    def tell(self, id: str, nids: str, uid: int = 1000, client: Any = None, **more: Any) -> None:
        self.number += 1
        more = {"alive_s": 3600.0, "profile": BEST_WITH_ONE, **more}
        self._tell(StepNodes(id, f"job-{id}", "lustre", nids, **more), uid, client)

    def end(self, id: str, uid: int = 1000, client: Any = None) -> None:
        self.number += 1
        self._tell(StepNodes(id, "", "lustre", "", ended=True), uid, client)

    def _tell(self, message: StepNodes, uid: int, client: Any) -> None:
        asked = PartRequest(f"n{self.number}", "routers", msgspec.msgpack.encode(message), uid)
        assert (client or self.client).request(asked, PATIENCE_S) == Acknowledged(asked.message_id)

    def rules(self, **more: Any) -> RouterRules:
        self.number += 1
        more = {"routers": ROUTERS, **more}
        asked = msgspec.msgpack.encode(RulesRequest("oss1", **more))
        reply = self.oss.request(PartRequest(f"r{self.number}", "routers", asked), PATIENCE_S)
        assert isinstance(reply, PartReply)
        return msgspec.msgpack.decode(reply.body, type=RouterRules)


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routed]:
    site = Site(tmp_path_factory.mktemp("routed"))
    keys.write_list(site.keys, "client-login1.uids", "2000")
    with site.config.open("a") as file:
        file.write("[run]\nalive_s = 0.01\n[part.routers]\nmode = 'apply'\n")
    site.mdsd()
    yield Routed(site)
    site.stop()


def test_a_steps_nodes_have_routers_of_their_own_until_it_ends(routed: Routed) -> None:
    """Two jobs that are best with one router each, and a third of which nothing is known."""
    routed.tell("a", NODES)
    routed.tell("b", "10.77.0.[41-44]@tcp1", uid=1001)
    routed.tell("c", "10.77.0.[51-54]@tcp1", profile=None)
    found = patiently(lambda: len((reply := routed.rules()).rules) == 2 and reply)
    assert {rule.dst for rule in found.rules} == {NODES, "10.77.0.[41-44]@tcp1"}
    assert {rule.rte for rule in found.rules} == {"10.0.0.11@tcp", "10.0.0.12@tcp"}
    assert (found.mode, routed.rules().generation) == ("apply", found.generation)
    assert routed.rules(routers=ROUTERS[:1]).rules == found.rules, "what a server cannot follow it leaves out"
    assert not routed.rules(fs_names=("other",)).rules
    status = routed.site.status()["parts"]["routers"]
    assert [job["routers"] for job in status["jobs"]] == [*(r.rte for r in found.rules), ""]
    assert status["jobs"][0]["slowdown"] < status["jobs"][0]["alike"]
    routed.end("a")
    left = patiently(lambda: len((reply := routed.rules()).rules) == 1 and reply)
    assert left.rules == tuple(rule for rule in found.rules if rule.dst != NODES)
    assert left.generation != found.generation
    routed.end("b", uid=1001)
    routed.end("c")
    assert patiently(lambda: not routed.rules().rules)
    lines = [line for line in routed.site.audit.read_text().splitlines() if "what=routers" in line]
    assert [line.partition('routers="')[2].partition('"')[0] for line in lines] == [
        *(rule.rte for rule in found.rules),
        *("", ""),
    ]
    assert "slowdown=1.0" in lines[0] and 'job="job-a"' in lines[0] and "nodes=4" in lines[0]


def test_who_may_speak_for_nodes(routed: Routed, tmp_path: Path) -> None:
    """A key with a list of uids; a second user, who claims the first one's nodes, or his step."""
    site, node = routed.site, tmp_path / "login1"
    secret, _ = keys.create(site.keys, "client", name="login1")
    node.mkdir()
    secret.rename(node / "client.key")
    shutil.copy(site.keys / "server.pub", node)
    login = site.client(node)
    routed.tell("d", NODES)
    (rule,) = patiently(lambda: routed.rules().rules)
    routed.tell("e", "10.77.0.99@tcp1", uid=1000, client=login)
    routed.tell("d", "10.77.0.99@tcp1", uid=2000, client=login)
    routed.end("d", uid=2000, client=login)
    status = site.wait_status(lambda status: status["refused_by_rights"] == 1)["parts"]["routers"]
    assert (status["steps"], status["refused"]) == (1, 2)
    assert routed.rules().rules == (rule,)
    # What two users claim is nobody's: it has all routes, as without tarazu.
    routed.tell("f", "10.77.0.[33-40]@tcp1", uid=2000, client=login)
    found = patiently(lambda: (new := routed.rules().rules) != (rule,) and new)
    assert "10.77.0.[31-32]@tcp1" in {r.dst for r in found}
    assert {r.dst for r in found} <= {"10.77.0.[31-32]@tcp1", "10.77.0.[35-40]@tcp1"}
    assert "2 of 4 nodes also belong to another user" in site.log("mdsd")


def test_a_leaders_word_comes_by_clientd(routed: Routed, tmp_path: Path) -> None:
    """As long as its step runs, and until it has ended."""
    site, socket = routed.site, str(tmp_path / "clientd.sock")
    site.start("clientd", "--socket", socket, "--database", str(tmp_path / "interaction.db"))
    (tmp_path / "nids").write_text("n[1-9] 10.88.0.[1-9]@tcp1\n")
    settings = config.Settings(
        clientd=config.ClientdSettings(socket=socket),
        run=config.RunSettings(alive_s=1.0),
    )
    over, lines = threading.Event(), list[str]()
    reports = StepReports(tmp_path, socket, "run")

    def told(id: str, body: bytes) -> None:
        tell(socket, reports, over, local.PartTold("routers", id, body))

    profile = msgspec.msgpack.encode(BEST_WITH_ONE)
    facts = StepFacts(
        settings,
        "4711",
        ["mpirun", "-H", "n1,n2,n3,n4", "app"],
        {},
        "/",
        over,
        str,
        lines.append,
        lambda: {"lustre": profile},
        told,
    )
    own = Routers(nids=str(tmp_path / "nids"))
    telling = NodeTelling(facts, own)
    assert patiently(Path(socket).exists)
    thread = threading.Thread(target=telling.during)
    thread.start()
    (rule,) = patiently(lambda: [r for r in routed.rules().rules if "10.88" in r.dst])
    assert rule.dst == "10.88.0.[1-4]@tcp1"
    over.set()
    thread.join()
    telling.end()
    assert patiently(lambda: not [r for r in routed.rules().rules if "10.88" in r.dst])
    assert not lines
    # A step of which nobody knows the nodes tells nothing.
    NodeTelling(facts._replace(argv=["mpirun", "-H", "x1", "app"], over=threading.Event()), own).during()
    assert "expected a line of host x1" in lines[0]
