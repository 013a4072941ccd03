"""systemd's side of a daemon: readiness, reloads, the watchdog's ping from the main loop and from nowhere else."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarazu.daemons.service_manager import ServiceManager

from .conftest import PATIENCE_S, Site

WATCHDOG_S = 1.0


class Systemd:
    """The socket that it listens on."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}

    def next(self, timeout_s: float = PATIENCE_S) -> dict[str, str]:
        self.socket.settimeout(timeout_s)
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def wait(self, holds: Callable[[dict[str, str]], object]) -> dict[str, str]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if holds(told := self.next()):
                return told
        raise AssertionError("never told")


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    names = {"path": str(tmp_path / "notify"), "abstract": f"@tarazu-test-{os.getpid()}-{tmp_path.name}"}
    listening = Systemd(names[request.param])
    yield listening
    listening.socket.close()


def test_what_is_told(systemd: Systemd) -> None:
    environ = {**systemd.environ, "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    manager = ServiceManager(environ)
    assert environ == {"PATH": "/bin"}, "what a daemon starts must not speak for it"
    manager.ready("5 OSTs\nSTOPPING=1")
    assert systemd.next() == {"READY": "1", "STATUS": "5 OSTs\\nSTOPPING=1"}
    manager.reloading()
    told = systemd.next()
    assert told.keys() == {"RELOADING", "MONOTONIC_USEC"}
    assert 0 <= time.monotonic() - int(told["MONOTONIC_USEC"]) / 1e6 < PATIENCE_S
    manager.alive()
    manager.alive()
    manager.status("6 OSTs")
    manager.status("6 OSTs")
    manager.busy(60)
    manager.busy(60)
    manager.stopping()
    assert [systemd.next() for _ in range(4)] == [
        {"WATCHDOG": "1"},
        {"STATUS": "6 OSTs"},
        {"EXTEND_TIMEOUT_USEC": "60000000"},
        {"STOPPING": "1"},
    ]
    assert manager.longest_wait_s(60) == WATCHDOG_S / 4
    manager.close()


def test_nobody_to_tell_and_nobody_who_reads_cost_nothing(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "x"}):
        manager = ServiceManager(environ)
        manager.ready()
        manager.alive()
        assert manager.longest_wait_s(60) == 60
        manager.close()
    full = Systemd(str(tmp_path / "full"))
    manager = ServiceManager(full.environ)
    begin = time.monotonic()
    for _ in range(2000):
        manager.ready()  # nobody reads: more than its queue takes
    assert time.monotonic() - begin < PATIENCE_S
    manager.close()
    full.socket.close()


@pytest.mark.parametrize("daemon", ["ossd", "clientd", "mdsd"])
def test_a_daemon_is_ready_when_it_serves_and_a_stopped_one_pings_no_more(
    site: Site, daemon: str, tmp_path: Path
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    options = {
        "ossd": ("--root", str(tmp_path)),
        "clientd": ("--socket", str(tmp_path / "clientd.sock"), "--database", str(tmp_path / "db")),
        "mdsd": (),
    }
    process = site.start(daemon, *options[daemon], environ=systemd.environ)
    systemd.wait(lambda told: "READY" in told)
    if daemon == "clientd":
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(tmp_path / "clientd.sock"))
    if daemon == "mdsd":
        with socket.create_connection(("127.0.0.1", int(site.requests.rpartition(":")[2]))):
            pass
    for _ in range(2):
        systemd.wait(lambda told: "WATCHDOG" in told)
    process.send_signal(signal.SIGHUP)
    systemd.wait(lambda told: "RELOADING" in told)
    systemd.wait(lambda told: "READY" in told)
    process.send_signal(signal.SIGSTOP)
    try:
        while True:
            systemd.next(WATCHDOG_S)  # said before it was stopped
    except TimeoutError:
        pass
    process.send_signal(signal.SIGCONT)
    systemd.wait(lambda told: "WATCHDOG" in told)
    process.terminate()
    systemd.wait(lambda told: "STOPPING" in told)
    assert process.wait(PATIENCE_S) == 0
    systemd.socket.close()
