"""The end that asks: each request is sent again until it is answered, by the first mdsd of the list that does."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import zmq

from tarazu.errors import Unavailable, WireError
from tarazu.left import KEY_REFUSED
from tarazu.wire import messages
from tarazu.wire.ends import KEYS_DIFFER, End, readable
from tarazu.wire.messages import (
    AllocationRequest,
    FileClosed,
    Reply,
    Request,
    TargetsChanged,
    encode,
)
from tarazu.wire.transport import MAX_REQUEST_BYTES, REPLIES, Counts, Servers, request_id

RESEND_S = 1.0
UNSENT_S, LEAST_UNSENT_S = 0.05, 0.001
"""What could not be sent for want of a connection is tried again after this."""
UNCONNECTED_S = 0.5
"""Without a connection to the mdsd that is asked first, the others are asked too after this."""


def listener(reach_s: float) -> str:
    """What was expected where nobody listens."""
    return f"an mdsd that listens there within {reach_s:g} s"


@dataclass
class _Open:
    """A request without an answer."""

    message: Request
    since_s: float
    due_s: float = 0.0


class Requester:
    """Sends requests and resends each until it is answered. Replies to nothing that is open are ignored.

    Of several servers a request goes to the one that answered last, and while that one is silent to the others as well.
    As soon as one before it in the list answers again, that one is asked.
    """

    resend_s: float = RESEND_S

    def __init__(self, servers: Servers, connect: Callable[[str], End]) -> None:
        """`connect` makes an end: at once for the server that is asked first, for another one once it is needed."""
        self.servers = servers
        self.counts = Counts()
        self._early: deque[Reply] = deque()
        """Replies to other requests that came while `request` waited for its own."""
        self._open: dict[str, _Open] = {}
        self._heard_s = 0.0
        """When the server that is asked first spoke last, or the first of what is open was submitted."""
        self._connected = True
        """What was sent last to the server that is asked first could be sent."""
        self._connect = connect
        self._ends: dict[int, End] = {}
        self._end = self._end_of(servers.first)

    def submit(self, message: Request) -> None:
        """Send as soon as somebody is connected; both that and the reply are up to `receive`.

        Raises WireError for a message that no replier would take.
        """
        if isinstance(message, AllocationRequest | FileClosed):
            size_bytes = len(encode(message))
            if size_bytes > MAX_REQUEST_BYTES:
                expected = f"a request of at most {MAX_REQUEST_BYTES} bytes"
                raise WireError(str(self.servers), expected, size_bytes)
        now = time.monotonic()
        if not self._open:
            self._heard_s = now
        self._open[request_id(message)] = _Open(message, now)
        self._resend()

    def forget(self, message_id: str) -> None:
        """No longer wait for the reply to this request."""
        self._open.pop(message_id, None)

    def receive(self, timeout_s: float) -> Reply | None:
        """The reply to one of the open requests, or a TargetsChanged, or None after `timeout_s`; resends meanwhile."""
        if self._early:
            return self._early.popleft()
        return self._receive(timeout_s)

    def _receive(self, timeout_s: float) -> Reply | None:
        deadline = time.monotonic() + timeout_s
        while True:
            due_s = self._resend()
            left_s = deadline - time.monotonic()
            came = self._next(max(0.0, min(left_s, due_s)))
            if came and (reply := self._taken(*came)):
                return reply
            if left_s <= 0 and came is None:
                return None

    def _taken(self, server: int, reply: Reply) -> Reply | None:
        """The reply, if it answers what is open."""
        if isinstance(reply, TargetsChanged):
            return reply  # nobody has asked for it
        is_open = request_id(reply) in self._open
        if server <= self.servers.first or is_open:
            self.servers.first, self._heard_s = server, time.monotonic()
        if not is_open:
            return None
        self.forget(request_id(reply))
        return reply

    @property
    def reached(self) -> bool:
        """Somebody listens at one of the addresses, or has listened there."""
        return any(end.reached for end in self._ends.values())

    def request(self, message: Request, timeout_s: float, reach_s: float | None = None) -> Reply:
        """Ask and wait. Raises Unavailable when no answer came within `timeout_s`, or when within `reach_s` nobody
        listens at any of the addresses.

        Replies to other open requests that arrive meanwhile are kept for `receive`. Raises WireError as `submit`.
        """
        wanted = request_id(message)
        self.submit(message)
        begin = time.monotonic()
        expected = f"an answer within {timeout_s:g} s"
        while (left_s := begin + timeout_s - time.monotonic()) > 0:
            if reach_s is not None and not self.reached:
                left_s = begin + reach_s - time.monotonic()
                if left_s <= 0:
                    expected = listener(reach_s)
                    break
            reply = self._receive(left_s)
            if reply is None:
                continue
            if request_id(reply) == wanted:
                return reply
            self._early.append(reply)
        self.forget(wanted)
        if any(end.key_refused for end in self._ends.values()):
            raise Unavailable(
                f"{KEY_REFUSED}{self.servers}: expected {expected}, found that it {KEYS_DIFFER}"
            )
        raise Unavailable(f"{self.servers}: expected {expected}, found none")

    def _resend(self) -> float:
        """Send whatever is due; seconds until the next is."""
        now = time.monotonic()
        wait_s = self.resend_s
        for open in list(self._open.values()):
            if open.due_s <= now:
                # Nobody connected: try again soon, so that a peer that comes back is asked at once. A new connection
                # stands within milliseconds: as long as it has been waited for is not too long.
                sent = (
                    self._send_to_all(open.message)
                    if self._silent(now)
                    else self._send_to_first(open.message)
                )
                again_s = min(UNSENT_S, self.resend_s, LEAST_UNSENT_S + now - open.since_s)
                open.due_s = now + (self.resend_s if sent else again_s)
            wait_s = min(wait_s, open.due_s - now)
        return max(0.0, wait_s)

    def _silent(self, now: float) -> bool:
        return now - self._heard_s > (2 * self.resend_s if self._connected else UNCONNECTED_S)

    def _send_to_first(self, message: Request) -> bool:
        self._connected = self._send(message, self.servers.first)
        # What is asked twice must not be promised twice.
        if not isinstance(message, AllocationRequest) and self.servers.look_back(time.monotonic()):
            for server in range(self.servers.first):
                self._send(message, server)
        return self._connected

    def _send_to_all(self, message: Request) -> bool:
        sent = self._send_to_first(message)
        for server in range(len(self.servers.addresses)):
            if server != self.servers.first:
                sent = self._send(message, server) or sent
        return sent

    def _end_of(self, server: int) -> End:
        if server not in self._ends:
            self._ends[server] = self._connect(self.servers.addresses[server])
            self._ends[server].counts = self.counts
        return self._ends[server]

    def _send(self, message: Request, server: int) -> bool:
        """Try to send now; False when nobody is connected."""
        end = self._end_of(server)
        end.look()
        try:
            end.socket.send(messages.encode(message), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _next(self, timeout_s: float) -> tuple[int, Reply] | None:
        """The next well-formed reply within `timeout_s`, and which server it came from."""
        end = readable(list(self._ends.values()), timeout_s)
        if end is None:
            return None
        if (got := end.frames()) is None:
            return None
        frames, peer = got
        message = self.counts.accept(b"".join(frames), peer.name, REPLIES)
        server = next(server for server, one in self._ends.items() if one is end)
        return (server, message) if isinstance(message, REPLIES) else None

    def close(self) -> None:
        for end in self._ends.values():
            end.close()
