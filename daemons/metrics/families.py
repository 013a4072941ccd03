"""Families that all three daemons have, and the short way to write one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from tarazu.daemons.metrics.histogram import Histogram
from tarazu.wire.transport import Counts


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"tarazu_{name}", text, value=value)


def counter(name: str, text: str, value: float) -> CounterMetricFamily:
    """`name` without `_total`."""
    return CounterMetricFamily(f"tarazu_{name}", text, value=value)


def counters(name: str, text: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    """One counter for each value of a label, of which there are few."""
    family = CounterMetricFamily(f"tarazu_{name}", text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


def histogram(name: str, text: str, values: Histogram) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"tarazu_{name}", text, buckets=values.buckets(), sum_value=values.sum)


def build() -> Iterator[Metric]:
    """Which tarazu this is."""
    family = GaugeMetricFamily("tarazu_build_info", "1; the version is in the label.", labels=("version",))
    family.add_metric((metadata.version("tarazu"),), 1)
    yield family


def of_sockets(name: str, sockets: Mapping[str, Counts]) -> Iterator[Metric]:
    """What each socket of a daemon has seen."""
    yield counters(
        f"{name}_messages_received",
        "Messages that were understood.",
        "socket",
        {socket: counts.received for socket, counts in sockets.items()},
    )
    yield counters(
        f"{name}_messages_dropped",
        "Messages that were malformed, of another protocol, or of a kind that has no place on the socket.",
        "socket",
        {socket: counts.dropped for socket, counts in sockets.items()},
    )
    yield counters(
        f"{name}_handshakes_refused",
        "Connections that were refused: a wrong key, none, or no ZeroMQ peer at all.",
        "socket",
        {socket: counts.refused for socket, counts in sockets.items()},
    )
