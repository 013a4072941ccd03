"""Many announcers in one process, for `decision`: each with a socket and a CURVE session of its own.

    python -m tests.benchmarks.tuning.announcers CONFIG FIRST COUNT as-they-come|in-step SECONDS

Says `ready` when all have been answered once, reads the moment to begin (monotonic clock), and prints as JSON the
seconds from before a message was sent to right after its decision was received.
"""

from __future__ import annotations

import json
import resource
import secrets
import select
import sys
import time

import msgspec
import zmq

from tarazu import config
from tarazu.parts.council.exchange import Decided, Observed, encode
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.parts.council.settings import options_of
from tarazu.wire.security import curve_for

INTERVAL_S = 1.0
PATIENCE_S = 60.0
LATE_S = 10.0

decided = msgspec.msgpack.Decoder(Decided)


class Announcer:
    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], settings: config.Settings, number: int
    ) -> None:
        curve = curve_for("oss", settings.keys.directory)
        assert curve is not None
        self.socket = context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.curve_publickey, self.socket.curve_secretkey = curve.own.public, curve.own.secret
        self.socket.curve_serverkey = curve.server
        self.socket.connect(options_of(settings).address)
        self.host = f"oss{number}"
        self.sequence = 0
        self.sent_at = 0.0
        self.answered = True
        self.own_at = 0.0
        self.generation = self.at_send = 0
        self.new_at = 0.0
        self.values: dict[str, str] = {"nrs": "fifo"}

    def send(self) -> None:
        self.sequence += 1
        moved = 10**9 + secrets.randbelow(10**8)
        seen = Observation(1.0, write=Direction(moved, 1000, 0.1), demand=8.0)
        self.answered, self.at_send = False, self.generation
        self.sent_at = time.monotonic()
        message = Observed(f"{self.sequence}", "g", self.host, "oss", seen, self.values, "apply")
        self.socket.send(encode(message))

    def receive(self) -> tuple[bool, bool]:
        """(its own answer, the first that is newer than what it sent with)."""
        own = new = False
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            said = decided.decode(self.socket.recv())
            now = time.monotonic()
            if said.generation > self.at_send and self.generation <= self.at_send:
                new, self.new_at = True, now - self.sent_at
            self.generation = max(self.generation, said.generation)
            self.values = {"nrs": said.values.get("nrs", "fifo")}
            if said.message_id == f"{self.sequence}" and not self.answered:
                own, self.answered = True, True
                self.own_at = now - self.sent_at
        return own, new


class Crowd:
    """All announcers of this process, and what they waited for."""

    def __init__(self, every: list[Announcer]) -> None:
        self.every = every
        self.own: list[float] = []
        """Seconds to its own answer."""
        self.new: list[float] = []
        """Seconds to the first decision that is newer than the one that was known when it sent."""
        # Not zmq's poller, which looks at each of hundreds of sockets each time.
        self._of = {each.socket.FD: each for each in every}
        self._poller = select.epoll()
        for each in every:
            self._poller.register(each.socket.FD, select.EPOLLIN | select.EPOLLET)

    def send(self, each: Announcer) -> None:
        each.send()
        self._look(each)  # the descriptor tells of changes only, and a send may take one

    def _look(self, each: Announcer) -> None:
        is_own, is_new = each.receive()
        if is_own:
            self.own.append(each.own_at)
        if is_new:
            self.new.append(each.new_at)

    def wait(self, seconds: float) -> None:
        for fd, _ in self._poller.poll(max(0.0, seconds)):
            self._look(self._of[fd])

    def greet(self) -> None:
        """All are answered once: connections and sessions stand."""
        for each in self.every:
            self.send(each)
        deadline = time.monotonic() + PATIENCE_S
        while self.unanswered():
            assert time.monotonic() < deadline, "the council does not answer"
            self.wait(0.1)
            for each in self.every:
                self._look(each)
        self.own, self.new = [], []

    def unanswered(self) -> int:
        return sum(not each.answered for each in self.every)

    def speak(self, begin: float, rounds: int, step_s: float) -> None:
        """`step_s` apart, in each interval."""
        due = [
            (begin + k * INTERVAL_S + n * step_s, e) for k in range(rounds) for n, e in enumerate(self.every)
        ]
        at = 0
        while at < len(due) or (self.unanswered() and time.monotonic() < due[-1][0] + LATE_S):
            while at < len(due) and due[at][0] <= time.monotonic():
                self.send(due[at][1])
                at += 1
                if step_s:
                    break
            self.wait(due[at][0] - time.monotonic() if at < len(due) else 0.1)
        # What is pushed after the last answer.
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            self.wait(0.05)


def main() -> None:
    file, first, count, how, seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    settings = config.load(file)
    context = zmq.Context()
    context.max_sockets = 4096
    crowd = Crowd([Announcer(context, settings, int(first) + n) for n in range(int(count))])
    crowd.greet()
    print("ready", flush=True)
    begin = float(sys.stdin.readline())
    step_s = INTERVAL_S / len(crowd.every) if how == "as-they-come" else 0.0
    crowd.speak(begin, int(float(seconds) / INTERVAL_S), step_s)
    print(json.dumps({"own": crowd.own, "new": crowd.new, "missing": crowd.unanswered()}), flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
