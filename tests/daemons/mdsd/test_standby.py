"""Two real mdsds, with keys, disks and a relay between them that can be cut: kills, partitions, a planned change."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.mdsd.book import Book
from tarazu.sim.testbed.processes import free_port
from tarazu.wire.messages import Acknowledged, AllocationReply, FileClosed, StepEnded
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Servers
from tests.daemons.conftest import PATIENCE_S, PATIENT_MDSD, Site, allocation, ask, program, status_by


class Relay:
    """Passes TCP connections on, until it is cut: then bytes go nowhere, as in a network that is parted."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.cut = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one = self.listener.accept()[0]
                other = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                if self.listener.fileno() < 0:
                    return
                one.close()
                continue
            self.connections += [one, other]
            for a, b in ((one, other), (other, one)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.cut:
                    sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            end.close()

    def heal(self) -> None:
        """What was lost is lost: connections begin anew."""
        self.cut = False
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def close(self) -> None:
        self.listener.close()
        self.heal()


class TwoMdsds(Site):
    """The second mdsd reaches the first one through the relay."""

    def __init__(self, directory: Path) -> None:
        self.link = free_port()
        self.relay = Relay(self.link)
        self.second_statistics = f"tcp://127.0.0.1:{free_port()}"
        self.second_requests = f"tcp://127.0.0.1:{free_port()}"
        self.running: dict[str, subprocess.Popen[str]] = {}
        super().__init__(directory)

    def configure(self, **mdsd: float) -> None:
        super().configure(**mdsd)
        pair = f"[standby]\nstatistics = '{self.second_statistics}'\nrequests = '{self.second_requests}'\n"
        text = self.config.read_text() + pair
        for name, port in (("second", self.relay.port), ("first", self.link)):
            self.config.write_text(
                text.replace("[mdsd]\n", f"[mdsd]\nreplication = 'tcp://127.0.0.1:{port}'\n")
            )
            shutil.copy(self.config, self.directory / f"{name}.toml")

    def run(self, name: str) -> None:
        arguments = ["--config", str(self.directory / f"{name}.toml"), "--state", str(self.directory / name)]
        arguments += ["--root", str(self.mds_root)]
        with (self.directory / f"{name}.log").open("a") as log:
            self.running[name] = subprocess.Popen(
                [*program("mdsd", PATIENT_MDSD), *arguments, *["--standby"] * (name == "second")],
                stdout=log,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONWARNINGS": "error"},
            )
        self.processes.append(self.running[name])

    def kill(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait()

    def asking(self, *addresses: str) -> Any:
        """A client that knows these addresses; all of them if none is given."""
        transport = ZmqTransport(curve_for("client", self.keys))
        self.transports.append(transport)
        requester = transport.requester(Servers(addresses or (self.requests, self.second_requests)))
        requester.resend_s = 0.2
        return requester

    def status_of(self, name: str) -> dict[str, Any]:
        client = self.asking(self.requests if name == "first" else self.second_requests)
        status = status_by(client, [self.running[name]])
        self.transports.pop().close()
        return status

    def wait(self, name: str, **wanted: Any) -> dict[str, Any]:
        """The first status of this mdsd whose `pair` is so."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            status = self.status_of(name)
            if all(status["pair"][key] == value for key, value in wanted.items()):
                return status
            time.sleep(0.05)
        raise AssertionError(f"{name} never was {wanted}: {status['pair']}\n{self.log(name)}")

    def digests(self) -> list[str]:
        """Of both ledgers, as they lie on the disks of two mdsds that have ended."""
        books = [Book.open(self.directory / name) for name in ("first", "second")]
        try:
            return [book.digest() for book in books]
        finally:
            for book in books:
                book.close()

    def stop(self) -> None:
        super().stop()
        self.relay.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[TwoMdsds]:
    site = TwoMdsds(tmp_path)
    yield site
    site.stop()


@pytest.fixture
def joined(pair: TwoMdsds) -> TwoMdsds:
    """The first one answers, the second follows, a server reports to both."""
    pair.run("first")
    pair.run("second")
    pair.ossd()
    pair.wait("first", role="active", in_step=True)
    pair.wait("second", role="following", in_step=True)
    return pair


def test_the_first_answers_the_second_follows_and_says_so(joined: TwoMdsds) -> None:
    assert ask(joined.asking(), allocation()).status == "allocated"
    only = joined.asking(joined.second_requests)
    only.submit(StepEnded("a1", "m1"))
    assert only.receive(0.5) is None
    second = joined.wait("second", sequence=joined.status_of("first")["pair"]["sequence"])
    assert second["requests"]["promises"] == 1 and second["file_systems"]["lustre"]["osts"]


@pytest.mark.long
def test_one_whose_disk_is_full_gives_way_to_the_other(joined: TwoMdsds) -> None:
    client = joined.asking()
    before = ask(client, allocation("before"))
    first = joined.running["first"].pid
    largest = max(path.stat().st_size for path in (joined.directory / "first").iterdir())
    resource.prlimit(first, resource.RLIMIT_FSIZE, (largest + 100, resource.RLIM_INFINITY))
    # What was noted meanwhile is declined, or answered by the other one.
    ask(client, allocation("meanwhile"))
    client.request(StepEnded("nobody", "m1"), PATIENCE_S)
    joined.wait("second", role="active", alone=True)
    assert ask(client, allocation("after")).status == "allocated"
    assert ask(client, allocation("before")) == before
    assert joined.status_of("first")["pair"]["role"] == "following"
    # With room again, it follows.
    resource.prlimit(first, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    joined.wait("first", role="following", in_step=True)
    joined.wait("second", role="active", in_step=True)


def test_killed_under_requests_nothing_answered_is_lost_or_answered_otherwise(joined: TwoMdsds) -> None:
    client = joined.asking()
    answers = {f"a{number}": ask(client, allocation(f"a{number}")) for number in range(10)}
    for number in range(10, 20):
        client.submit(allocation(f"a{number}"))
    joined.kill("first")
    while len(answers) < 20:
        reply = client.receive(PATIENCE_S)
        assert isinstance(reply, AllocationReply)
        answers[reply.id] = reply
    assert {reply.status for reply in answers.values()} == {"allocated"}
    assert joined.wait("second", role="active", alone=True)["requests"]["promises"] == 20
    # Back again, it follows.
    joined.run("first")
    joined.wait("first", role="following", in_step=True)
    joined.wait("second", role="active", in_step=True)
    for id, reply in answers.items():
        assert ask(client, allocation(id)) == reply
    joined.wait("first", sequence=joined.status_of("second")["pair"]["sequence"])
    joined.kill("second")
    joined.kill("first")
    one, other = joined.digests()
    assert one == other


def test_stopped_on_purpose_it_hands_over_at_once(joined: TwoMdsds) -> None:
    client = joined.asking()
    first = ask(client, allocation())
    joined.running["first"].send_signal(signal.SIGTERM)
    assert client.request(StepEnded("nobody", "m1"), PATIENCE_S) == Acknowledged("m1")
    assert joined.running["first"].wait(PATIENCE_S) == 0
    assert ask(client, allocation()) == first
    assert "the active mdsd ends" in joined.log("second")
    assert "silent" not in joined.log("second")


def test_parted_both_answer_and_healed_they_agree(joined: TwoMdsds) -> None:
    ask(joined.asking(), allocation("before"))
    joined.relay.cut = True
    joined.wait("second", role="active", alone=True)
    joined.wait("first", role="active", alone=True)
    one, other = joined.asking(joined.requests), joined.asking(joined.second_requests)
    replies = [ask(one, allocation("first")), ask(other, allocation("second"))]
    assert one.request(FileClosed("first", "m1", ((0, 1 << 20),)), PATIENCE_S) == Acknowledged("m1")
    assert one.request(StepEnded("before", "m2"), PATIENCE_S) == Acknowledged("m2")
    joined.relay.heal()
    joined.wait("first", role="following", in_step=True)
    status = joined.wait("second", role="active", in_step=True)
    assert status["requests"]["promises"] == 2
    both = joined.asking()
    assert [ask(both, allocation(reply.id)) for reply in replies] == replies
    joined.wait("first", sequence=joined.status_of("second")["pair"]["sequence"])
    joined.kill("second")
    joined.kill("first")
    one, other = joined.digests()
    assert one == other
