"""Many clientds in one process, each with a connection of its own: all ask at the same moment.

`python -m tests.benchmarks.daemons.simulated_clients CONFIG FIRST COUNT FILES STRIPES` says `connected`, waits for a
line with a time (monotonic), asks, and prints seconds and status of each answer as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import zmq

from tarazu import config
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.wire.messages import Acknowledged, AllocationReply, AllocationRequest, FileSpec, StepAlive
from tarazu.wire.requester import Requester
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport

FILE_BYTES = 8 << 30
DEADLINE_S = 27.0
"""clientd's."""
LOOK_S = 0.2


def request(client: int, files: int, stripes: int) -> AllocationRequest:
    return AllocationRequest(
        id=f"step-{client}",
        fs_name="fs0",
        uid=1000 + client,
        job_id=str(client),
        layouts=(Layout((Component(0, EOF, 1 << 20, stripes),)),),
        files=tuple(FileSpec(FILE_BYTES, 0) for _ in range(files)),
        deadline_s=DEADLINE_S,
        expires_s=3600.0,
        alive_s=60.0,
    )


def main(path: str, first: int, count: int, files: int, stripes: int) -> None:
    settings = config.load(path)
    transport = ZmqTransport(curve_for("client", settings.keys.directory))
    transport.context.set(zmq.MAX_SOCKETS, 4 * count + 100)
    clients: list[Requester] = [transport.requester(settings.mdsd.requests) for _ in range(count)]
    for number, client in enumerate(clients):
        reply = client.request(StepAlive((), f"hello-{first + number}"), 60.0)
        assert isinstance(reply, Acknowledged)
    print("connected", flush=True)
    begin = float(sys.stdin.readline())
    requests = [request(first + number, files, stripes) for number in range(count)]
    time.sleep(max(0.0, begin - time.monotonic()))
    for client, asked in zip(clients, requests, strict=True):
        client.submit(asked)
    open_ = dict(enumerate(clients))
    answers: list[tuple[float, str]] = []
    poller = zmq.Poller()
    for end in transport.ends:
        poller.register(end.socket, zmq.POLLIN)
    while open_ and time.monotonic() < begin + 2 * DEADLINE_S:
        poller.poll(int(LOOK_S * 1000))
        for number, client in list(open_.items()):
            if isinstance(reply := client.receive(0), AllocationReply):
                answers.append((time.monotonic() - begin, reply.status))
                del open_[number]
    print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
