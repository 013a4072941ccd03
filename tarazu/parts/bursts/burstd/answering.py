"""The Unix socket of tarazu-burstd, in a thread of its own: whoever submits a job waits for the answer.

Who asks is known from the kernel (SO_PEERCRED). A connection that is slow, or one too many, is closed; that costs its
owner the answer, and nobody else.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.figures import Histogram
from tarazu.parts.bursts.burstd.asked import MAX_QUESTION, Question, read
from tarazu.wire.channel import peer_uid
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.bursts")

BACKLOG = 256
MOST = 128
"""Connections at once, but Slurm's own."""
MOST_OF_USER = 8
"""Of those, one user's."""
SLOW_S = 1.0
"""For the question to come, and for the answer to be taken."""
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

AnswerTo = Callable[[Question, int], bytes]
"""A question, and the uid of who asks → the line to send. Raises TarazuError to close without one."""


class _Connection:
    def __init__(self, sock: socket.socket, uid: int, until: float, slurms: bool) -> None:
        self.sock = sock
        self.uid = uid
        self.slurms = slurms
        self.until = until
        self.heard = b""
        self.unsaid = b""


class Answering:
    def __init__(self, path: str, answer: AnswerTo, privileged: Callable[[int], bool]) -> None:
        """`privileged`: whether a uid is Slurm's. Raises ConfigError where no socket can listen at `path`."""
        self.path = Path(path)
        self.took = Histogram(SECONDS)
        """From the whole question to the answer."""
        self.refused: Counter[str] = Counter()
        self._answer, self._privileged = answer, privileged
        self._said = SaidOnce(log)
        self._listening = self._listen()
        self._inode = os.stat(self.path).st_ino
        self._open: dict[int, _Connection] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._over, self._end = os.pipe()
        self._selector.register(self._over, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="tarazu-bursts-asked", daemon=True)
        self._thread.start()

    def _listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside.unlink(missing_ok=True)
            listening.bind(str(beside))
            beside.chmod(0o666)  # who may ask what is looked at for each
            listening.listen(BACKLOG)
            listening.setblocking(False)
            beside.rename(self.path)
        except OSError as error:
            listening.close()
            raise ConfigError(
                "part.bursts.socket",
                "a path where a socket can be made",
                f"{self.path}: {error.strerror or error}",
            ) from None
        return listening

    def _serve(self) -> None:
        while True:
            timeout_s = SLOW_S if self._open else None
            ready = [key.fd for key, _ in self._selector.select(timeout_s)]
            if self._over in ready:
                return
            if self._listening.fileno() in ready:
                self._accept()
            # Of users' questions one at a time, so that Slurm's wait for one answer at most.
            heard = [self._open[fd] for fd in ready if fd in self._open]
            for connection in [c for c in heard if c.slurms] + [c for c in heard if not c.slurms][:1]:
                self._go_on(connection)
            now = time.monotonic()
            for connection in [c for c in self._open.values() if c.until < now]:
                self._refuse(connection, "slow")

    def _accept(self) -> None:
        for _ in range(MOST):
            try:
                sock, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._said.warning(f"{self.path}: {error.strerror}")
                return
            sock.setblocking(False)
            uid = peer_uid(sock)
            connection = _Connection(sock, uid, time.monotonic() + SLOW_S, self._privileged(uid))
            of_user = sum(c.uid == uid for c in self._open.values())
            if not connection.slurms and (len(self._open) >= MOST or of_user >= MOST_OF_USER):
                self.refused["too many"] += 1
                sock.close()
                continue
            self._open[sock.fileno()] = connection
            self._selector.register(sock, selectors.EVENT_READ)
            if connection.slurms:
                self._go_on(connection)  # mostly the question is there

    def _go_on(self, connection: _Connection) -> None:
        try:
            if connection.unsaid:
                self._say(connection)
                return
            connection.heard += connection.sock.recv(MAX_QUESTION + 1 - len(connection.heard)) or b"\n\n"
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(connection)
            return
        line, newline, _ = connection.heard.partition(b"\n")
        if newline:
            self._hear(connection, line)
        elif len(connection.heard) > MAX_QUESTION:
            self._refuse(connection, "too long")

    def _hear(self, connection: _Connection, line: bytes) -> None:
        begin = time.perf_counter()
        try:
            connection.unsaid = self._answer(read(line), connection.uid)
        except TarazuError as error:
            self._said.warning(f"asked by uid {connection.uid}: {error}", f"{connection.uid}")
            self._refuse(connection, "no question" if isinstance(error, BadInput) else "not answered")
            return
        except Exception:
            log.exception("asked by uid %d: not answered", connection.uid)
            self._refuse(connection, "not answered")
            return
        self.took.observe(time.perf_counter() - begin)
        with contextlib.suppress(OSError):
            self._say(connection)

    def _say(self, connection: _Connection) -> None:
        try:
            sent = connection.sock.send(connection.unsaid)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._close(connection)
            return
        connection.unsaid = connection.unsaid[sent:]
        if not connection.unsaid:
            self._close(connection)
        else:
            self._selector.modify(connection.sock, selectors.EVENT_WRITE)

    def _refuse(self, connection: _Connection, why: str) -> None:
        self.refused[why] += 1
        self._close(connection)

    def _close(self, connection: _Connection) -> None:
        if self._open.pop(connection.sock.fileno(), None) is not None:
            self._selector.unregister(connection.sock)
        connection.sock.close()

    def close(self) -> None:
        os.write(self._end, b"\0")
        self._thread.join(2.0)
        for connection in list(self._open.values()):
            self._close(connection)
        self._selector.close()
        self._listening.close()
        os.close(self._over)
        os.close(self._end)
        with contextlib.suppress(OSError):
            if os.stat(self.path).st_ino == self._inode:  # not another one's
                self.path.unlink()
