"""mdsd as a process: statistics in, answers out, and what it does when things go wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zmq

from tarazu.config import Weights
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.wire import keys, messages
from tarazu.wire.messages import Acknowledged, FileClosed, FileSpec, StepEnded, ViewRequest
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import DATA, PATIENCE_S, Site, allocation, ask, patiently


def promised(status: dict[str, Any]) -> int:
    return sum(ost["promised_bytes"] for ost in status["file_systems"]["lustre"]["osts"])


def has_osts(status: dict[str, Any]) -> bool:
    """And it can place on them."""
    return bool(status["ready"] and status["file_systems"])


@pytest.fixture
def running(site: Site) -> Site:
    """mdsd and one ossd, already seen."""
    site.mdsd()
    site.ossd()
    site.wait_status(has_osts)
    return site


def test_reports_flow_into_the_status(running: Site) -> None:
    status = running.status()
    osts = status["file_systems"]["lustre"]["osts"]
    assert [ost["index"] for ost in osts] == [0, 1, 2, 3, 4]
    assert all(ost["usable"] and ost["pools"] == ["flash"] for ost in osts)
    assert osts[0]["total_bytes"] == 954304 * 1024
    assert status["osses"]["oss1"]["stale"] is False
    assert status["keys"] is True and status["gate"]["open"] is True
    # The node that mdsd is on is an MDS: its load, and what Lustre's own allocator goes by.
    mds = running.wait_status(lambda s: s["mds"]["interval_s"] > 0)["mds"]
    assert mds["files_free"] == {"lustre-MDT0000": 838456} and 0.1 < mds["memory_load"] < 0.3
    assert mds["unreadable"] == [] and mds["operations_per_s"] == {"lustre-MDT0000": {}}
    qos = {"qos_maxage": "5", "qos_prio_free": "90%", "qos_threshold_rr": "17%"}
    assert status["file_systems"]["lustre"]["qos"] == {"lustre-MDT0000-mdtlov": qos}
    assert all(o["timed_by"]["writes"] == "brw_stats" and o["health"] == "" for o in osts)
    client = running.client()
    seen = client.request(ViewRequest("v1", "lustre"), PATIENCE_S)
    assert [o.index for o in seen.view.osts if o.usable] == [0, 1, 2, 3, 4] and seen.view.osses[
        0
    ].name == "oss1"
    assert (seen.why_closed, seen.fs_names, seen.weights) == ("", ("lustre",), Weights())
    assert 0 <= seen.age_s < PATIENCE_S
    other = client.request(ViewRequest("v2", "other"), PATIENCE_S)
    assert (other.view, other.fs_names) == (None, ("lustre",))


def test_a_request_is_answered_promised_and_audited(running: Site) -> None:
    client = running.client()
    reply = ask(client, allocation())
    assert reply.status == "allocated" and reply.policy == "tarazu"
    assert len(reply.osts) == 2
    assert all(len(set(file[0])) == 2 and set(file[0]) <= {0, 1, 2, 3, 4} for file in reply.osts)
    assert reply.ost_cost >= reply.ost_cost_bound > 0
    assert promised(running.status()) == 16 << 20
    view = client.request(ViewRequest("v"), PATIENCE_S).view
    assert sum(o.promised_bytes for o in view.osts) == 16 << 20, "the allocator sees it too"
    (line,) = running.audit.read_text().splitlines()
    assert re.search(
        r'status=allocated id="a1" fs="lustre" uid=1000 job="4711" files=2 bytes=16777216 ', line
    )
    assert re.search(r"policy=tarazu cost=\d\.\d+ bound=\d\.\d+ elapsed_s=\d", line)


def test_a_resent_request_gets_the_same_answer_and_no_second_promise(running: Site) -> None:
    first = ask(running.client(), allocation())
    again = ask(running.client(), allocation())
    assert again == first
    status = running.status()
    assert promised(status) == 16 << 20
    assert status["requests"]["answers"] == {"allocated": 1}


def test_promises_shrink_at_close_and_end_with_the_step(running: Site) -> None:
    client = running.client()
    ask(client, allocation(expires_s=1e6))
    ask(client, allocation("a2", expires_s=1e6))
    # Two statistics intervals after its close a file's promise is gone.
    closed = FileClosed("a1", "m1", ((0, 4 << 20),))
    assert client.request(closed, PATIENCE_S) == Acknowledged("m1")
    assert client.request(closed, PATIENCE_S) == Acknowledged("m1")
    running.wait_status(lambda status: promised(status) == 24 << 20)
    assert client.request(StepEnded("a1", "m2"), PATIENCE_S) == Acknowledged("m2")
    assert promised(running.status()) == 16 << 20
    assert client.request(StepEnded("nobody", "m3"), PATIENCE_S) == Acknowledged("m3")


def test_what_was_written_stays_promised_until_reports_can_show_it(site: Site) -> None:
    site.mdsd()
    site.start("ossd", "--name", "oss1", "--root", str(DATA / "oss"), "--interval", "3600")
    site.wait_status(has_osts)
    client = site.client()
    ask(client, allocation())
    for message in (FileClosed("a1", "m1", ((0, 4 << 20),)), StepEnded("a1", "m2"), StepEnded("a1", "m3")):
        client.request(message, PATIENCE_S)
        if isinstance(message, FileClosed):
            assert promised(site.status()) == (4 << 20) + (8 << 20)
    assert promised(site.status()) == 4 << 20


def test_a_promise_expires_by_itself(running: Site) -> None:
    ask(running.client(), allocation(expires_s=0.2))
    running.wait_status(lambda status: promised(status) == 0 and status["requests"]["promises"] == 0)


def test_what_cannot_be_placed_is_answered_with_the_reason(site: Site) -> None:
    site.configure(stale_after_s=600.0)
    site.mdsd()
    site.ossd()
    site.wait_status(has_osts)
    wide = Layout((Component(0, EOF, 1 << 20, 9),))
    cases: list[tuple[dict[str, Any], str, str]] = [
        (
            {"fs_name": "scratch", "deadline_s": 60.0},
            "unknown-fs",
            r"an OSS reports \(lustre\), found scratch",
        ),
        ({"files": (FileSpec(1, 7),)}, "never", "file 0: expected a layout below 1, found 7"),
        ({"files": (FileSpec(-1, 0),)}, "never", "file 0: expected a size"),
        ({"deadline_s": float("nan")}, "never", "expected a deadline"),
        ({"layouts": (Layout(()),)}, "never", "layout 0: expected components, found none"),
        # Other servers may still report for so long after the start.
        ({"layouts": (wide,)}, "later", ""),
        ({"files": (FileSpec(1_850_000_000, 0),)}, "later", ""),
        ({"files": (FileSpec(1 << 50, 0),)}, "later", ""),
    ]
    client = site.client()
    for number, (changes, status, reason) in enumerate(cases):
        reply = ask(client, allocation(f"n{number}", **changes))
        assert reply.status == status and re.search(reason, reply.reason) and reply.reason, changes
    assert ask(client, allocation("next")).status == "allocated"
    assert len(site.audit.read_text().splitlines()) == len(cases) + 1


def test_the_gate_declines_at_the_deadline_and_status_is_served_meanwhile(site: Site) -> None:
    site.configure(memory_limit=0.01)
    site.mdsd()
    site.ossd()
    site.wait_status(has_osts)
    client = site.client()
    client.submit(allocation("waits", deadline_s=3600.0))
    status = site.wait_status(
        lambda status: client.receive(0.05) is None and status["requests"]["waiting"] == 1
    )
    assert status["gate"]["open"] is False and "memory" in status["gate"]["why_closed"]
    reply = ask(client, allocation(deadline_s=0.2))
    assert reply.status == "declined" and "memory" in reply.reason
    assert client.receive(0.0) is None
    assert "status=declined" in site.audit.read_text()


def test_a_wrong_key_is_refused_counted_and_the_others_go_on(running: Site, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    for role in keys.ROLES:
        keys.create(stranger, role)
    (stranger / "server.pub").write_bytes((running.keys / "server.pub").read_bytes())
    refused = running.client(stranger)
    refused.submit(allocation("stranger"))
    patiently(lambda: not refused.receive(0.05) and refused.counts.refused)
    status = running.wait_status(lambda status: status["requests"]["refused"] > 0)
    assert "stranger" not in running.audit.read_text()
    assert "its key is not that of any client" in running.log("mdsd")
    assert ask(running.client(), allocation()).status == "allocated"
    assert status["statistics"]["refused"] == 0


def test_an_oss_key_asks_for_no_allocation(running: Site) -> None:
    transport = ZmqTransport(curve_for("oss", running.keys))
    requester = transport.requester(running.requests)
    requester.submit(allocation("from-oss"))
    status = running.wait_status(
        lambda status: not requester.receive(0.05) and status["requests"]["dropped"] > 0
    )
    assert requester.receive(0.05) is None
    transport.close()
    assert status["requests"]["answers"] == {} and status["requests"]["promises"] == 0


def test_malformed_messages_are_dropped_and_the_daemon_lives(running: Site) -> None:
    client = running.client()
    end = client._end
    ask(client, allocation())
    for data in (b"", b"\xff" * 100, b"\x80", messages.encode(messages.Acknowledged("x")), b"\x91" * 10_000):
        end.socket.send(data)
    other_version = messages.encode(messages.StatusRequest("v")).replace(b"status?", b"statvs?")
    end.socket.send_multipart([b"several", b"frames", other_version])
    status = running.wait_status(lambda status: status["requests"]["dropped"] == 6)
    assert status["requests"]["answers"] == {"allocated": 1}
    assert running.log("mdsd").count("dropped a message") == 1


def test_killed_and_restarted_it_knows_all_at_once_and_answers_what_was_open(site: Site) -> None:
    # An interval that the test never sees the end of: reports come because mdsd comes.
    first = site.mdsd()
    site.start(
        "ossd",
        "--name",
        "oss1",
        "--root",
        str(DATA / "oss"),
        "--interval",
        "3600",
    )
    site.wait_status(has_osts)
    first.send_signal(signal.SIGKILL)
    first.wait()
    client = site.client()
    client.submit(allocation())
    assert client.receive(0.3) is None
    site.mdsd()
    site.wait_status(has_osts)
    reply = client.receive(PATIENCE_S)
    # Even when it came before the first report.
    assert reply.status == "allocated"


def test_sigterm_ends_it_cleanly_and_sighup_does_not(running: Site) -> None:
    mdsd = running.processes[0]
    mdsd.send_signal(signal.SIGHUP)
    assert ask(running.client(), allocation()).status == "allocated"
    mdsd.send_signal(signal.SIGTERM)
    assert mdsd.wait(PATIENCE_S) == 0
    assert "Traceback" not in running.log("mdsd")


def run_mdsd(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tarazu.daemons.mdsd.service", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "TARAZU_STATE_DIRECTORY": "/proc/none"},
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[mdsd]\ncpu_limit = 7\n",
            "tarazu.toml:6: [mdsd] cpu_limit: expected a share between 0 and 1, found 7",
        ),
        ("[mdsd\n", "tarazu.toml:5: expected TOML"),
        ("[mdsd]\nrequests = 'tcp://0.0.0.0:0'\n", "tcp://0.0.0.0:0: expected CURVE keys"),
        ("[mdsd]\nrequests = 'tcp://127.0.0.1:99999'\n", "expected a port from 0 to 65535"),
        ("[mdsd]\naudit_log = '/nowhere/audit'\n", "/nowhere/audit: expected a writable file"),
    ],
)
def test_bad_configuration_is_one_line_and_status_2(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "tarazu.toml"
    path.write_text(f"[keys]\ndirectory = '{tmp_path}'\n[allocate]\nleast_gain = -1.0\n{text}")
    statistics = () if "statistics" in text else ("--statistics", "tcp://127.0.0.1:*")
    result = run_mdsd("--config", str(path), *statistics)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1 and says in result.stderr


def test_a_port_in_use_is_one_line_and_status_2(tmp_path: Path, site: Site) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as taken:
        taken.bind(site.requests)
        result = run_mdsd("--config", str(site.config))
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "expected an address that can be bound" in result.stderr


def test_a_request_waits_for_its_turn_and_all_are_answered(running: Site) -> None:
    client = running.client()
    for number in range(20):
        client.submit(allocation(f"n{number}", files=tuple(FileSpec(1 << 20, 0) for _ in range(50))))
    replies = [client.receive(PATIENCE_S) for _ in range(20)]
    assert {reply.id for reply in replies} == {f"n{number}" for number in range(20)}
    assert {reply.status for reply in replies} == {"allocated"}
