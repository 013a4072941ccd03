"""`make bench-daemons` in small: real daemons and connections; what is measured there is only looked at here."""

from __future__ import annotations

import zmq

from tarazu.wire.sockets import ZmqTransport
from tarazu.wire.transport import Servers
from tests.benchmarks.daemons import clients, servers
from tests.benchmarks.figure import Figure


def value(figures: list[Figure], beginning: str) -> float:
    return next(figure.value for figure in figures if figure.what.startswith(beginning))


def test_servers_report_over_connections_of_their_own_and_come_back_after_a_kill() -> None:
    figures = servers.measure(False, servers=60, interval_s=2.0, steady_s=1.0, processes=2)
    assert value(figures, "connections") == 60 and value(figures, "OSTs") == 480
    assert value(figures, "kill -9 and restart") > 0 and value(figures, "mdsd's memory at most") < 1000


def test_clients_that_ask_at_once_are_all_answered() -> None:
    figures = clients.measure(False, clients=16, servers=4, processes=2)
    assert value(figures, "clients") == 16
    assert 0 < value(figures, "answer, median") <= value(figures, "answer, slowest")


def test_no_end_sends_heartbeats_and_the_kernel_watches_all() -> None:
    transport = ZmqTransport(None)
    try:
        replier, subscriber = (
            transport.replier("tcp://127.0.0.1:*"),
            transport.subscriber("tcp://127.0.0.1:*"),
        )
        transport.publisher(subscriber.address)
        transport.requester(replier.address)
        transport.requester(Servers((replier.address, "tcp://127.0.0.1:1")))
        for end in transport.ends:
            assert end.socket.getsockopt(zmq.HEARTBEAT_IVL) == 0, end.address
            assert end.socket.getsockopt(zmq.TCP_KEEPALIVE) == 1, end.address
            assert 0 < int(end.socket.getsockopt(zmq.TCP_MAXRT)) <= 30_000, end.address
    finally:
        transport.close()
