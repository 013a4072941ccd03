"""What may be wrong with tarazu-burstd while jobs are submitted: contexts in which it is so."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from tests.parts.bursts.loop.site import Bursts


@contextmanager
def dead(bursts: Bursts) -> Iterator[None]:
    bursts.signal(signal.SIGKILL)
    try:
        yield
    finally:
        bursts.start()


@contextmanager
def stopped(bursts: Bursts) -> Iterator[None]:
    bursts.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        bursts.signal(signal.SIGCONT)


@contextmanager
def garbage(bursts: Bursts) -> Iterator[None]:
    answers = [
        b"\0" * 5000 + b"\n",
        b'{"v":1,"nodes":"nosuch[1-4]","say":""}\n',
        b'{"v":1,"nodes":"n[1-400000000]","say":""}\n',
    ]
    with _server(bursts, lambda number: answers[number % len(answers)]):
        yield


@contextmanager
def never_ending(bursts: Bursts) -> Iterator[None]:
    with _server(bursts, lambda _: b"x" * (1 << 20)):
        yield


@contextmanager
def _server(bursts: Bursts, answer: Callable[[int], bytes]) -> Iterator[None]:
    """Somebody else listens, who answers each question with one of these."""
    aside = bursts.socket.with_name("aside")
    bursts.socket.rename(aside)
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(bursts.socket))
        listening.listen()
        listening.settimeout(0.1)

        def serve() -> None:
            number = 0
            while not over.is_set():
                with suppress(OSError):
                    sock, _ = listening.accept()
                    with sock:
                        sock.recv(65536)
                        sock.sendall(answer(number))
                    number += 1

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            aside.rename(bursts.socket)


TROUBLES: dict[str, Callable[[Bursts], AbstractContextManager[None]]] = {
    "dead": dead,
    "stopped": stopped,
    "garbage": garbage,
    "never ending": never_ending,
}
