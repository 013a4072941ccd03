"""For whom a client's key speaks and what an OSS's key reports: at the real mdsd, and case by case."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.daemons import asking
from tarazu.daemons.mdsd.rights import Rights
from tarazu.daemons.questions import Questions
from tarazu.doctor import peers
from tarazu.doctor.node import Node
from tarazu.errors import Unavailable
from tarazu.wire import keys
from tarazu.wire.admission import Admission
from tarazu.wire.messages import FileClosed, StatusRequest, StepAlive, StepEnded, ViewReply, ViewRequest
from tarazu.wire.reports import OssReport, OstReport
from tarazu.wire.transport import Peer
from tests.daemons.conftest import PATIENCE_S, Site, allocation, ask, patiently


def peer(**limits: object) -> Peer:
    return Peer(b"r", "10.0.0.7", Admission("client-login1", "client", b"k", **limits))  # type: ignore[arg-type]


LIMITED = peer(uids=((1000, 1999),))
FREE = peer()
OWNERS = {"mine": 1500, "theirs": 2500}


def rights(required: bool = False) -> Rights:
    return Rights(required, OWNERS.get)


def test_a_key_asks_for_its_users_only() -> None:
    one = rights()
    assert one.refusal(LIMITED, allocation("new", uid=1500)) == ""
    refusal = one.refusal(LIMITED, allocation("new", uid=2500))
    assert refusal == "expected a uid that the key client-login1 may ask for, found 2500"
    assert one.refusal(FREE, allocation("new", uid=2500)) == "" and one.refused == 1
    assert rights(required=True).refusal(FREE, allocation("new", uid=2500))
    assert rights(required=True).refusal(Peer(b"", "127.0.0.1"), allocation("new")) == ""


def test_an_id_of_another_user_is_not_asked_with_again() -> None:
    """It would get the other's answer, and keep his promises alive."""
    assert "found one of another user's" in rights().refusal(FREE, allocation("theirs", uid=1500))
    assert rights().refusal(FREE, allocation("theirs", uid=2500)) == ""


def test_a_key_tells_of_its_users_steps_only() -> None:
    one = rights()
    for mine in (FileClosed("mine", "m", ()), StepEnded("mine", "m"), StepAlive(("mine", "nobody's"), "m")):
        assert one.heeded(LIMITED, mine) is mine
    for theirs in (FileClosed("theirs", "m", ()), StepEnded("theirs", "m"), StepAlive(("theirs",), "m")):
        assert one.heeded(LIMITED, theirs) is None and one.heeded(FREE, theirs) is theirs
    both = one.heeded(LIMITED, StepAlive(("theirs", "mine"), "m"))
    assert isinstance(both, StepAlive) and both.ids == ("mine",)
    assert one.refused == 4


def report(name: str, *indices: int) -> OssReport:
    osts = tuple(OstReport("scratch", index, 10, 5, 5) for index in indices)
    return OssReport(name, 1, 0.0, 60.0, 0.0, 0.0, 0.0, osts)


def test_a_key_reports_its_targets_only(caplog: pytest.LogCaptureFixture) -> None:
    own = peer(targets=("scratch-OST000[0-3]",))
    with caplog.at_level(logging.WARNING):
        permitted = rights().permitted(own, report("oss1", 0, 3, 4), 0.0)
    assert [ost.index for ost in permitted.osts] == [0, 3]
    assert "reported scratch-OST0004, which is not in client-login1.targets" in caplog.text
    assert rights().permitted(FREE, report("oss1", 0, 4), 0.0).osts == report("oss1", 0, 4).osts


def test_a_target_that_two_keys_report_at_a_time_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    one = rights()
    other = Peer(b"", "10.0.0.8", Admission("oss-rogue", "oss", b"r"))
    with caplog.at_level(logging.WARNING):
        one.permitted(FREE, report("oss1", 0), 0.0)
        one.permitted(other, report("oss2", 0), 600.0)  # it took over after a failover
        assert not caplog.records
        one.permitted(FREE, report("oss1", 0), 610.0)
    assert (
        "scratch-OST0000 is reported with two keys: oss-rogue (oss2) and client-login1 (oss1)" in caplog.text
    )


def test_a_node_asks_mdsd_for_its_own_users_only(site: Site, tmp_path: Path) -> None:
    """With a key of its own, as `tarazu config keys create client --name login1 --uids 1000-1999` makes it."""
    node = tmp_path / "login1"
    keys.write_list(site.keys, "client-login1.uids", "1000-1999")
    secret, _ = keys.create(site.keys, "client", name="login1")
    node.mkdir()
    secret.rename(node / "client.key")
    shutil.copy(site.keys / "server.pub", node)
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["osses"])
    login, other = site.client(node), site.client()
    assert ask(login, allocation("a1", uid=1000)).status == "allocated"
    assert ask(other, allocation("b1", uid=2000)).status == "allocated"
    refused = ask(login, allocation("a2", uid=2000))
    assert (refused.status, refused.reason) == (
        "declined",
        "expected a uid that the key client-login1 may ask for, found 2000",
    )
    assert ask(other, allocation("a1", uid=2000)).status == "declined"
    promised = site.status()["requests"]["promises"]
    login.request(StepEnded("b1", "m1"), PATIENCE_S)
    assert site.status()["requests"]["promises"] == promised
    login.request(StepEnded("a1", "m2"), PATIENCE_S)
    status = site.status()
    assert status["requests"]["promises"] == promised - 1 and status["refused_by_rights"] == 3
    (line,) = [line for line in site.audit.read_text().splitlines() if 'id="a2"' in line]
    assert "status=declined" in line and line.endswith('key="client-login1"') and "uid=2000" in line
    (site.keys / "client-login1.pub").unlink()
    login.resend_s = 0.1
    deadline = time.monotonic() + PATIENCE_S
    while not site.status()["requests"]["refused"] and time.monotonic() < deadline:
        login.submit(StatusRequest("s"))
        login.receive(0.2)
    with pytest.raises(Unavailable):
        login.request(StatusRequest("s2"), 0.5)
    assert "its key was removed: it is shut out" in site.log("mdsd")
    assert msgspec.json.encode(status)


def test_a_servers_commands_ask_mdsd_with_the_key_that_is_there(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `tarazu init` leaves an OSS, and the second mdsd's node: without client.key."""
    for pools in list(site.mds_root.rglob("pools")):
        shutil.rmtree(pools)
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["osses"])
    pools = {"lustre": {"flash": (0,)}}
    for role in ("oss", "server"):
        node, file = tmp_path / role, tmp_path / f"{role}.toml"
        node.mkdir()
        for name in (f"{role}.key", "server.pub"):
            shutil.copy(site.keys / name, node)
        text = site.config.read_text().replace(str(site.keys), str(node))
        file.write_text(f"{text}[clientd]\nsocket = '/nonexistent'\n")
        for words in (("job", "explain", "--costs"), ("status",), ("top",)):
            assert patiently(lambda: main([*words, "--json", "--config", str(file)]) == 0)  # noqa: B023
        settings = config.load(file)

        def verdicts() -> dict[str, str]:
            node = Node(settings, frozenset({"oss", "mdsd"}), status=lambda: asking.status_of(settings))  # noqa: B023
            return {finding.check: finding.verdict for finding in peers.look(node)}

        assert patiently(lambda: verdicts().get("mdsd") == "ok")
        # Of pools clients tell: no other's word of them counts.
        with Questions(settings).connection() as mdsd:
            told = mdsd.request(ViewRequest("v", "lustre", pools), PATIENCE_S)
        assert isinstance(told, ViewReply) and told.view and not any(o.pools for o in told.view.osts)
    told = site.client().request(ViewRequest("w", "lustre", pools), PATIENCE_S)
    assert [o.index for o in told.view.osts if o.pools] == [0]
    capsys.readouterr()


def test_a_key_reports_of_what_parts_name_its_targets_only(caplog: pytest.LogCaptureFixture) -> None:
    osts = tuple(OstReport("scratch", index, 1, 1, 1) for index in range(3))
    report = OssReport("oss1", 1, 0.0, 60.0, 0.0, 0.0, 0.0, osts)
    one = rights()
    allowed = peer(targets=("scratch-OST000[01]",))
    assert [ost.index for ost in one.permitted(allowed, report, 0.0).osts] == [0, 1]
    assert one.refused == 1 and "which is not in client-login1.targets" in caplog.text
    assert one.permitted(FREE, report, 0.0) == report
    assert one.permitted(peer(targets=("*-OST*",)), report, 0.0) == report
    assert one.may_report(allowed, "scratch-OST0000", report, 0.0)
    assert not one.may_report(allowed, "scratch-MDT0000", report, 0.0) and one.refused == 2


def test_a_target_that_a_part_names_and_two_keys_report_is_told(caplog: pytest.LogCaptureFixture) -> None:
    one = rights()
    for name in ("oss-mds1", "oss-mds2"):
        report = OssReport(name, 1, 0.0, 60.0, 0.0, 0.0, 0.0, ())
        one.may_report(Peer(b"r", "10.0.0.7", Admission(name, "oss", b"k")), "scratch-MDT0001", report, 0.0)
    assert "scratch-MDT0001 is reported with two keys: oss-mds1 (oss-mds1) and oss-mds2" in caplog.text
