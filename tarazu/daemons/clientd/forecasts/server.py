"""Forks the processes of forecasts: `python -m tarazu.daemons.clientd.forecasts.server DESCRIPTOR`, started by clientd.

It has one thread, has loaded whatever a forecast needs, reads nothing of any user, and ends with clientd, taking its
processes along: the socket from clientd then has its end. A process that was not told to end in time is killed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from contextlib import closing
from typing import NoReturn

from tarazu import native, part
from tarazu.daemons.clientd.forecasts import work
from tarazu.daemons.clientd.forecasts.frames import BEGIN, END, MAX_FRAME_BYTES, READY, Begin, Pipe
from tarazu.errors import Unavailable

LOOK_S = 0.5
"""How often processes that have ended are noticed, while there are any."""


def main(descriptor: int) -> int:
    native.load()
    part.installed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: clientd says when it is over
    control = socket.socket(fileno=descriptor)
    gc.collect()
    gc.freeze()  # what all processes share is never written to
    children: dict[int, int] = {}
    try:
        control.send(READY)
        while _handle(control, children):
            _reap(children)
        return 0
    except (BrokenPipeError, ConnectionError):
        return 0
    finally:
        for pid in children.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _handle(control: socket.socket, children: dict[int, int]) -> bool:
    """One word of clientd, if it comes soon; False when clientd is gone."""
    control.settimeout(LOOK_S if children else None)
    try:
        data, descriptors, _, _ = socket.recv_fds(control, BEGIN.size, 1)
    except TimeoutError:
        return True
    if not data:
        return False
    if len(data) == END.size:
        if pid := children.get(END.unpack(data)[0]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return True
    begin = Begin(*BEGIN.unpack(data))
    (ours,) = descriptors
    server = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        print(f"a forecast cannot begin: {error.strerror}", file=sys.stderr, flush=True)
        os.close(ours)
        return True
    if pid:
        os.close(ours)
        children[begin.number] = pid
        return True
    control.close()
    _serve(begin, server, ours)


def _serve(begin: Begin, server: int, descriptor: int) -> NoReturn:
    """In the process of the forecast."""
    status = 1
    try:
        work.give_up(begin, server)
        with closing(Pipe(socket.socket(fileno=descriptor), max_bytes=MAX_FRAME_BYTES)) as pipe:
            work.serve(pipe)
        status = 0
    except Unavailable:
        status = 0  # clientd does not wait any longer
    finally:
        os._exit(status)


def _reap(children: dict[int, int]) -> None:
    for number, pid in list(children.items()):
        if os.waitpid(pid, os.WNOHANG)[0]:
            del children[number]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
