"""Asks every mdsd for a view, ten times a second: how long was there none that answered?"""

from __future__ import annotations

import threading
import time

from tarazu.wire.messages import ViewReply, ViewRequest
from tests.chaos.site import FS, Site

EVERY_S = 0.1


class Prober(threading.Thread):
    def __init__(self, site: Site) -> None:
        super().__init__(name="chaos-prober", daemon=True)
        self.site = site
        self.longest_s = 0.0
        self.answers = 0
        self._last: float | None = None
        self._end = threading.Event()

    def end(self) -> None:
        self._end.set()

    def run(self) -> None:
        self.site.enter("watch")
        transport = self.site.transport()
        asked = [transport.requester(address) for address in self.site.requests]
        number, due = 0, 0.0
        try:
            while not self._end.is_set():
                if time.monotonic() >= due:
                    due, number = time.monotonic() + EVERY_S, number + 1
                    for requester in asked:
                        # The one before is of no interest any more: whoever comes back is asked anew.
                        requester.forget(f"probe-{number - 20}")
                        requester.submit(ViewRequest(f"probe-{number}", FS))
                transport.wait(max(0.0, due - time.monotonic()))
                for requester in asked:
                    while (reply := requester.receive(0)) is not None:
                        if isinstance(reply, ViewReply) and reply.view is not None:
                            self._answered()
        finally:
            transport.close()

    def _answered(self) -> None:
        now = time.monotonic()
        if self._last is not None:
            self.longest_s = max(self.longest_s, now - self._last)
        self._last = now
        self.answers += 1

    def so_far_s(self) -> float:
        """The longest time without an answer, the one that lasts still among them."""
        return max(self.longest_s, time.monotonic() - self._last) if self._last is not None else 0.0
