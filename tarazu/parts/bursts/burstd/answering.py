"""The Unix socket of tarazu-burstd, in a thread of its own: whoever submits a job waits for the answer.

Slurm's plugin asks for a job that is just being submitted: one line of JSON each, then the end. Only Slurm and root are
answered; who asks is known from the kernel (SO_PEERCRED).
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tarazu.errors import BadInput, ConfigError, TarazuError
from tarazu.malformed import MALFORMED, described
from tarazu.wire.channel import peer_uid
from tarazu.wire.said import SaidOnce

VERSION = 1
MAX_QUESTION = 8192
MAX_CHARACTERS = 1024
"""Of a name."""
MAX_NODES = 100_000


class AboutJob(msgspec.Struct, frozen=True, tag="job", tag_field="ask"):
    """Which nodes a job should get. Asked only where its user said nothing of nodes but how many."""

    v: int
    name: str
    nodes: int
    uid: int
    user: str
    """The name of `uid`."""
    partition: str = ""
    """Empty: the default one."""
    waits: bool = False
    """It will not start at once: held, to begin later, after another."""


class JobAnswer(msgspec.Struct, frozen=True):
    """The plugin knows these members in this order only."""

    v: int
    nodes: str
    """Those to ask Slurm for, folded; empty: Slurm's own choice."""
    say: str
    """To the user; empty: nothing."""


def read(line: bytes) -> AboutJob:
    """Raises BadInput."""
    try:
        question = msgspec.json.decode(line, type=AboutJob)
    except MALFORMED as error:
        raise BadInput("question", "a line of JSON that asks about a job", str(error)) from None
    if question.v != VERSION:
        raise BadInput("question: v", str(VERSION), question.v)
    if not 0 < question.nodes <= MAX_NODES or not 0 <= question.uid < 1 << 32:
        raise BadInput("question", "possible numbers", f"nodes {question.nodes}, uid {question.uid}")
    if max(map(len, (question.user, question.name, question.partition))) > MAX_CHARACTERS:
        raise BadInput("question", f"names of at most {MAX_CHARACTERS} characters", "longer ones")
    return msgspec.structs.replace(
        question,
        user=_decoded(question.user),
        name=_decoded(question.name),
        partition=_decoded(question.partition),
    )


def _decoded(text: str) -> str:
    """The plugin writes each byte of a name as a character of its own."""
    try:
        return text.encode("latin-1").decode(errors="replace")
    except UnicodeEncodeError:
        return text


def plain(text: str) -> str:
    """What the plugin shows a user: it reads no escapes."""
    return "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "?" for c in text)[:500]


described(AboutJob)


log = logging.getLogger("tarazu.bursts")

BACKLOG = 256
SLOW_S = 1.0
"""For the question to come, and for the answer to be taken."""

AnswerTo = Callable[[AboutJob], JobAnswer]
"""Raises TarazuError to close without one."""


class Answering:
    def __init__(self, path: str, answer: AnswerTo, privileged: Callable[[int], bool]) -> None:
        """`privileged`: whether a uid is Slurm's. Raises ConfigError where no socket can listen at `path`."""
        self.path = Path(path)
        self.refused = 0
        self._answer, self._privileged = answer, privileged
        self._said = SaidOnce(log)
        self._listening = self._listen()
        self._inode = os.stat(self.path).st_ino
        self._open: dict[socket.socket, tuple[float, bytes]] = {}
        """Connection → until when its question is waited for, and what is there of it."""
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
            beside.chmod(0o666)  # who asks is looked at
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
            for key, _ in self._selector.select(SLOW_S if self._open else None):
                if key.fileobj == self._over:
                    return
                if key.fileobj is self._listening:
                    self._accept()
                else:
                    self._hear(key.fileobj)  # type: ignore[arg-type]
            now = time.monotonic()
            for connection in [each for each, (until, _) in self._open.items() if until < now]:
                self._refuse(connection)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._said.warning(f"{self.path}: {error.strerror}")
            return
        if not self._privileged(peer_uid(connection)):
            self.refused += 1
            connection.close()
            return
        connection.setblocking(False)
        self._open[connection] = time.monotonic() + SLOW_S, b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        until, heard = self._open[connection]
        try:
            more = connection.recv(MAX_QUESTION + 1 - len(heard))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            more = b""
        heard += more
        self._open[connection] = until, heard
        line, newline, _ = heard.partition(b"\n")
        if newline:
            self._say(connection, line)
        elif not more or len(heard) > MAX_QUESTION:
            self._refuse(connection)

    def _say(self, connection: socket.socket, line: bytes) -> None:
        try:
            answer = msgspec.json.encode(self._answer(read(line))) + b"\n"
        except TarazuError as error:
            self._said.warning(f"not answered: {error}")
            self._refuse(connection)
            return
        except Exception:
            log.exception("not answered")
            self._refuse(connection)
            return
        with contextlib.suppress(OSError):
            connection.settimeout(SLOW_S)
            connection.sendall(answer)
        self._close(connection)

    def _refuse(self, connection: socket.socket) -> None:
        self.refused += 1
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        del self._open[connection]
        self._selector.unregister(connection)
        connection.close()

    def close(self) -> None:
        os.write(self._end, b"\0")
        self._thread.join(2.0)
        for connection in list(self._open):
            self._close(connection)
        self._selector.close()
        self._listening.close()
        os.close(self._over)
        os.close(self._end)
        with contextlib.suppress(OSError):
            if os.stat(self.path).st_ino == self._inode:  # not another one's
                self.path.unlink()
