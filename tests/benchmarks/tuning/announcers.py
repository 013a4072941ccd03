"""Many announcers in one process, for `decision`: each with a socket and a CURVE session of its own.

    python -m tests.benchmarks.tuning.announcers CONFIG FIRST COUNT as-they-come|in-step SECONDS FEATURES

Says `ready` when all have been answered once, reads the moment to begin (monotonic clock), and prints as JSON the
seconds from before a message was sent to right after its decision was received.
"""

from __future__ import annotations

import json
import resource
import secrets
import sys
import time

import msgspec
import zmq

from tarazu import config
from tarazu.tune.exchange import Decided, Observed, encode
from tarazu.tune.observation import Direction, Observation
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
        self.socket.connect(settings.tune.council)
        self.host = f"oss{number}"
        self.start = secrets.randbits(62)
        self.sequence = 0
        self.sent_at = 0.0
        self.answered = True
        self.generation = self.at_send = 0
        self.new_at = 0.0
        self.values: dict[str, str] = {"nrs": "fifo"}

    def send(self, features: tuple[float, ...]) -> None:
        self.sequence += 1
        moved = 10**9 + secrets.randbelow(10**8)
        seen = Observation(
            1.0, write=Direction(moved, 1000, 0, features, -1.0 if features else 0.1), demand=8.0
        )
        self.answered, self.at_send = False, self.generation
        self.sent_at = time.monotonic()
        message = Observed(
            f"{self.sequence}", "g", self.host, "oss", self.start, self.sequence, seen, self.values, "apply"
        )
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


def main() -> None:
    file, first, count, how, seconds, with_features = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    settings = config.load(file)
    features: tuple[float, ...] = ()
    if with_features == "features":
        from tarazu.tune.detect.features import features as features_of

        features = features_of([(n << 20, 1 << 20, 0) for n in range(64)])
    context = zmq.Context()
    context.max_sockets = 4096
    every = [Announcer(context, settings, int(first) + n) for n in range(int(count))]
    of = {each.socket: each for each in every}
    poller = zmq.Poller()
    for each in every:
        poller.register(each.socket, zmq.POLLIN)
        each.send(features)
    deadline = time.monotonic() + PATIENCE_S
    while not all(each.answered for each in every):
        assert time.monotonic() < deadline, "the council does not answer"
        for socket, _ in poller.poll(100):
            of[socket].receive()
    print("ready", flush=True)
    begin = float(sys.stdin.readline())
    step_s = INTERVAL_S / len(every) if how == "as-they-come" else 0.0
    rounds = int(float(seconds) / INTERVAL_S)
    due = [(begin + k * INTERVAL_S + n * step_s, each) for k in range(rounds) for n, each in enumerate(every)]
    own, new, late = [], [], 0.0
    at = 0
    while at < len(due) or (time.monotonic() < due[-1][0] + LATE_S and not all(e.answered for e in every)):
        now = time.monotonic()
        while at < len(due) and due[at][0] <= now:
            late = max(late, now - due[at][0])
            due[at][1].send(features)
            at += 1
            if how == "as-they-come":
                break
        wait_s = due[at][0] - time.monotonic() if at < len(due) else 0.1
        for socket, _ in poller.poll(max(0, int(wait_s * 1000))):
            each = of[socket]
            is_own, is_new = each.receive()
            if is_own:
                own.append(each.own_at)
            if is_new:
                new.append(each.new_at)
    # What was pushed after the last answer.
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        for socket, _ in poller.poll(50):
            if of[socket].receive()[1]:
                new.append(of[socket].new_at)
    missing = sum(not each.answered for each in every)
    print(json.dumps({"own": own, "new": new, "missing": missing, "late": late}), flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
