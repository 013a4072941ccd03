"""Ports that are chosen for daemons: nobody else's until the daemon is up."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest
import zmq

from tarazu.sim.testbed import processes as ports

CHOOSER = """
import sys
from tarazu.sim.testbed import processes as ports
ports.FIRST, ports.LAST = int(sys.argv[1]), int(sys.argv[1]) + 40
print(*ports.free_ports(int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The first of the only forty that there are to choose from."""
    first = ports.free_port() // 40 * 40
    monkeypatch.setattr(ports, "FIRST", first)
    monkeypatch.setattr(ports, "LAST", first + 40)
    monkeypatch.setattr(ports, "_kept", kept := deque())
    yield first
    for each in kept:
        socket.close(each)


def test_two_who_choose_at_one_time_choose_differently(few: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHOOSER, str(few), "15"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin and other.stdout
        ours = [ports.free_port() for _ in range(15)]
        theirs = [int(port) for port in other.stdout.readline().split()]
        assert len({*ours, *theirs}) == 30
        other.stdin.close()


def test_a_daemon_binds_it_and_whoever_comes_too_early_is_refused(few: int) -> None:
    at = ("127.0.0.1", ports.free_port())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(at)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as daemon:
        daemon.bind(f"tcp://127.0.0.1:{at[1]}")
        socket.create_connection(at).close()
    # As http.server does, and whatever else is written in Python.
    with socket.create_server(("127.0.0.1", ports.free_port())):
        pass


def test_a_process_keeps_so_many(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MOST_KEPT", 10)
    for _ in range(100):
        ports.free_port()
    assert len(ports._kept) == 10
