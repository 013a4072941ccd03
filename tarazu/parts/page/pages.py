"""Addresses → documents. Each is made when it is asked for, once for what is seen, whoever asks how often."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from tarazu.parts.page import document
from tarazu.parts.page.document import History
from tarazu.parts.page.markup import plain
from tarazu.parts.page.past import Event, Past
from tarazu.parts.page.problems import problems
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState

HTML = "text/html; charset=utf-8"
JSON = "application/json"
LEAST_PACKED = 1024
"""What is shorter is not compressed."""


class Body(NamedTuple):
    type: str
    plain: bytes
    packed: bytes | None
    """With gzip."""


class Pages:
    """`get` is called from the threads of the server, the rest from the loop."""

    def __init__(
        self,
        results: Results,
        every_s: float,
        looked: Callable[[], None],
        clock: Callable[[], float] = time.time,
        kept: Past | None = None,
    ) -> None:
        """`looked` is called whenever somebody asks for something. `kept`: what was before."""
        self._kept = kept
        self._failing: dict[str, float] = {}
        """First part of an address → since when it cannot be made, Unix time."""
        self._clock = clock
        self._results = results
        self._every_s = every_s
        self._looked = looked
        self._seen = SystemState()
        self._history: History = {}
        self._events: Sequence[Event] = ()
        self._made: dict[str, Body | None] = {}
        self._lock = threading.Lock()

    def show(self, seen: SystemState, history: History, events: Sequence[Event] = ()) -> None:
        """From now on this is shown. `events`: of the last day."""
        with self._lock:
            self._seen, self._history, self._events, self._made = seen, history, events, {}

    def every(self, every_s: float) -> None:
        with self._lock:
            self._every_s, self._made = every_s, {}

    def get(self, path: str) -> Body | None:
        """The document at `path` (without its query); None: there is none."""
        self._looked()
        make = self._maker(path)
        if make is None:
            return None
        with self._lock:
            if path not in self._made:
                body = make()
                self._failing.pop(path.split("/")[1], None)
                if body is None or path.count("/") > 1 or len(body.plain) > 4 << 20:
                    return body  # not kept: there are thousands of them
                self._made[path] = body
            return self._made[path]

    def failed(self, path: str) -> Body:
        """What is shown in place of a page that could not be made."""
        since_s = self._failing.setdefault(path.split("/")[1], self._clock())
        return _html(document.failed(since_s, "../" * (path.count("/") - 1)))

    def _maker(self, path: str) -> Callable[[], Body | None] | None:
        if path == "/":
            return self._overview
        if path in ("/osts", "/servers"):
            return lambda: self._all(document.osts if path == "/osts" else document.servers)
        if path == "/status.json":
            return self._json
        if match := re.fullmatch(r"/(osts|servers)/([^/]{1,1000})", path):
            kind, name = match[1], unquote(match[2])
            return lambda: self._one(kind, name)
        if match := re.fullmatch(r"/results/([A-Za-z0-9._-]{1,105}?)(\.json)?", path):
            name, raw = match[1], bool(match[2])
            return lambda: self._raw(name) if raw else self._result(name)
        return None

    def _all(self, make: Callable[..., str]) -> Body:
        return _html(make(self._seen, self._results.all(), now_s=self._clock(), every_s=self._every_s))

    def _one(self, kind: str, name: str) -> Body | None:
        saved = self._results.all()
        now_s = self._clock()
        found = document.one(kind, self._seen, name, self._kept, saved, now_s=now_s, every_s=self._every_s)
        return None if found is None else _html(found)

    def _overview(self) -> Body:
        results = self._results
        return _html(
            document.overview(
                self._seen,
                self._history,
                results.all(),
                results.directory,
                now_s=self._clock(),
                every_s=self._every_s,
                events=self._events,
            )
        )

    def _json(self) -> Body:
        """All that the pages show; None for a figure that is not a number."""
        history = {
            fs_name: [
                {"span_s": period.span_s, "length_s": period.length_s, "moments": moments}
                for period, moments in periods.items()
            ]
            for fs_name, periods in self._history.items()
        }
        seen, results = self._seen, self._results.all()
        value = {
            "problem": seen.problem,
            "problems": [
                {
                    "what": plain(of.what),
                    "why": of.why,
                    "since_s": of.since_s,
                    "where": of.where,
                    "command": of.command,
                    "note": of.note,
                }
                for of in problems(seen, results)
            ],
            "since_yesterday": self._events,
            "overview": seen.overview,
            "allocations": seen.work,
            "imbalance": history,
            "changes": seen.here,
            "results": results,
        }
        return _body(JSON, msgspec.json.encode(value))

    def _result(self, name: str) -> Body | None:
        saved = next((of for of in self._results.all() if of.name == name), None)
        return None if saved is None else _html(document.result(saved))

    def _raw(self, name: str) -> Body | None:
        data = self._results.raw(name)
        return None if data is None else _body(JSON, data)


def _html(text: str) -> Body:
    # A name with half a surrogate pair must not cost the page.
    return _body(HTML, text.encode(errors="replace"))


def _body(type_: str, plain: bytes) -> Body:
    return Body(type_, plain, gzip.compress(plain, 5, mtime=0) if len(plain) >= LEAST_PACKED else None)
