"""Addresses → documents. Each is made when it is asked for, once for what is seen, whoever asks how often."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from tarazu.errors import TarazuError
from tarazu.parts.changes.here import Listed
from tarazu.parts.page.charts import charts
from tarazu.parts.page.history import History
from tarazu.parts.page.problems import mend, opening, problems
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.words import TEMPLATES
from tarazu.wire.overview import Target, busiest

HTML, JSON = "text/html; charset=utf-8", "application/json"
CSS, SCRIPT = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
STATIC = {
    "/page.css": (CSS, "templates/page.css"),
    "/page.js": (SCRIPT, "templates/page.js"),
    "/uplot.css": (CSS, "uplot/uPlot.min.css"),
    "/uplot.js": (SCRIPT, "uplot/uPlot.iife.min.js"),
}
"""Address → what lies in this folder."""
MOST_JOBS = 5
FIRST = ("being changed", "failed", "cannot mend", "refused", "left", "gone")
"""States of changes that want somebody's eyes."""


class Body(NamedTuple):
    type: str
    plain: bytes
    packed: bytes
    """With gzip."""


class Pages:
    """`get` is called from the threads of the server, the rest from the loop."""

    def __init__(
        self,
        results: Results,
        every_s: float,
        looked: Callable[[], None],
        clock: Callable[[], float] = time.time,
        history: History | None = None,
    ) -> None:
        """`looked` is called whenever somebody asks for something."""
        self._results, self._every_s, self._looked = results, every_s, looked
        self._clock, self._history = clock, history
        self._seen = SystemState()
        self.charts: dict[str, list[dict[str, Any]]] = {}
        """Of whole file systems."""
        self._made: dict[str, Body | None] = {}
        self._lock = threading.Lock()
        here = Path(__file__).parent
        self._static = {at: _body(kind, (here / file).read_bytes()) for at, (kind, file) in STATIC.items()}

    def show(self, seen: SystemState) -> None:
        """From now on this is shown."""
        with self._lock:
            self._seen, self._made = seen, {}

    def get(self, path: str) -> Body | None:
        """The document at `path` (without its query); None: there is none."""
        if path in self._static:
            return self._static[path]
        self._looked()
        if (make := self._maker(path)) is None:
            return None
        with self._lock:
            if path not in self._made:
                body = make()
                if body is None or path.count("/") > 1:
                    return body  # not kept: there are thousands of them
                self._made[path] = body
            return self._made[path]

    def _maker(self, path: str) -> Callable[[], Body | None] | None:
        if path in ("/", "/all"):
            return lambda: self._html(f"{path[1:] or 'overview'}.html", path, **self._values())
        if path == "/status.json":
            return self._json
        if match := re.fullmatch(r"/(osts|servers)/([^/]{1,1000})", path):
            make, name = (self._ost if match[1] == "osts" else self._server), unquote(match[2])
            return lambda: make(path, name)
        if match := re.fullmatch(r"/results/([A-Za-z0-9._-]{1,105}?)(\.json)?", path):
            make = self._raw if match[2] else self._result
            return lambda: make(path, match[1])
        return None

    def _html(self, template: str, path: str, **values: Any) -> Body:
        text = TEMPLATES.get_template(template).render(
            every_s=self._every_s,
            top="../" * (path.count("/") - 1),
            version=metadata.version("tarazu"),
            now_s=self._clock(),
            **values,
        )
        # A name with half a surrogate pair must not cost the page.
        return _body(HTML, text.encode(errors="replace"))

    def _values(self) -> dict[str, Any]:
        """What all pages of the system are made of."""
        seen, saved = self._seen, self._results.all()
        changes = [("this node", one) for agent in seen.here for one in agent.changes]
        changes += [(of.name, one) for of in saved for one in of.changes]
        changes.sort(key=lambda each: (each[1].state not in FIRST, each[0], each[1].lever))
        found = problems(seen, changes)
        return {
            "seen": seen,
            "overview": seen.overview,
            "targets": seen.overview.targets if seen.overview else (),
            "others": seen.overview.others if seen.overview else (),
            "problems": found,
            "opening": opening(seen, found, self._clock()),
            "changes": changes,
            "saved": saved,
            "directory": self._results.directory,
            "charts": self.charts,
            "charts_of": self._charts_of,
        }

    def _charts_of(self, fs_name: str, osts: Sequence[int]) -> list[dict[str, Any]]:
        """Nothing where the history cannot be read: the first page says so."""
        try:
            return charts(self._history, fs_name, osts, self._clock()) if self._history else []
        except TarazuError:
            return []

    def _one(self, name: str, of: Sequence[Target], servers: set[str]) -> dict[str, Any]:
        """What the page of an OST or a server is made of."""
        values, names = self._values(), {name, *(t.name for t in of)}
        by_bytes, by_operations = busiest(
            [s for s in values["overview"].servers if s.name in servers], MOST_JOBS
        )
        about = [(node, one) for node, one in values["changes"] if node in names or _is_about(one, names)]
        jobs = list(dict.fromkeys((*by_bytes, *by_operations)))
        return {**values, "name": name, "targets": of, "jobs": jobs, "changes": about}

    def _ost(self, path: str, name: str) -> Body | None:
        targets = self._seen.overview.targets if self._seen.overview else ()
        if (t := next((t for t in targets if t.name == name), None)) is None:
            return None
        return self._html("ost.html", path, **self._one(name, [t], {t.oss}), t=t, mend=mend(t))

    def _server(self, path: str, name: str) -> Body | None:
        targets = [t for t in self._seen.overview.targets if t.oss == name] if self._seen.overview else []
        servers = self._seen.overview.servers if self._seen.overview else ()
        server = next((s for s in servers if s.name == name), None)
        if not (targets or server):
            return None
        values = self._one(name, targets, {name})
        values["problems"] = [one for one in values["problems"] if one.oss == name]
        values["others"] = [of for of in values["others"] if of.server == name]
        return self._html("server.html", path, **values, server=server)

    def _json(self) -> Body:
        """All that the pages show; None for a figure that is not a number."""
        values, seen = self._values(), self._seen
        value = {
            "problem": seen.problem,
            "problems": [one._asdict() for one in values["problems"]],
            "overview": seen.overview,
            "allocations": seen.work,
            "changes": seen.here,
            "results": values["saved"],
        }
        return _body(JSON, msgspec.json.encode(value))

    def _result(self, path: str, name: str) -> Body | None:
        found = next((of for of in self._results.all() if of.name == name), None)
        if found is None:
            return None
        value = {} if found.problem else msgspec.json.decode(self._results.raw(name) or b"{}")
        value = value if isinstance(value, dict) else {name: value}
        return self._html("result.html", path, of=found, value=value)

    def _raw(self, path: str, name: str) -> Body | None:
        data = self._results.raw(name)
        return None if data is None else _body(JSON, data)


def _is_about(one: Listed, names: set[str]) -> bool:
    """Whether its target, parts or commands name one of these."""
    parts = (*one.wanted, *one.wanted.values(), *one.before, *one.before.values())
    text = " ".join((one.target, *parts, *one.commands))
    return any(name in text for name in names)


def _body(type_: str, data: bytes) -> Body:
    return Body(type_, data, gzip.compress(data, 5, mtime=0))
