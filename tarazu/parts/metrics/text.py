"""The text that Prometheus gets: of the process, of the interpreter, and a daemon's own families."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from tarazu.figures import Classes, Family

SHARE = 0.05
"""Of a core, for making the text again and again, however often it is asked for."""


class _Collected:
    """prometheus_client's Collector of one daemon."""

    def __init__(self, families: Callable[[], Iterable[Family]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        build = Family("gauge", "build_info", "1; the version is in the label.", ("version",))
        build.samples[(metadata.version("tarazu"),)] = 1
        yield metric(build)
        yield from map(metric, self._families())


class Text:
    """The text, made anew when the last one is old enough."""

    def __init__(self, families: Callable[[], Iterable[Family]]) -> None:
        """`families`: called for each text, in a thread of the server; may raise Unavailable."""
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)
        # Not registered: a registry asks at once for what is collected, and no loop turns yet to answer.
        self._own: Any = _Collected(families)
        self._lock = threading.Lock()
        self._text = b""
        self._until = 0.0

    def now(self) -> bytes:
        with self._lock:
            begin = time.monotonic()
            if begin >= self._until:
                self._text = generate_latest(self._process) + generate_latest(self._own)
                end = time.monotonic()
                self._until = end + (end - begin) / SHARE
            return self._text


_SHOWN = {
    "gauge": GaugeMetricFamily,
    "counter": CounterMetricFamily,
    "histogram": HistogramMetricFamily,
}


def metric(of: Family) -> Metric:
    """A family as prometheus_client has it."""
    shown: Any = _SHOWN[of.kind](f"tarazu_{of.name}", of.text, labels=of.labels)
    for labels, value in of.samples.items():
        shown.add_metric(labels, *(value if isinstance(value, Classes) else (value,)))
    return shown  # type: ignore[no-any-return]
