"""Families that all daemons have, and the short way to write one."""

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


_OF_SOCKET = (
    ("messages_received", "received", "Valid messages."),
    ("messages_dropped", "dropped", "Malformed messages, or of a type that the socket does not take."),
    ("messages_beyond_rate", "too_many", "Messages beyond the rate of one connection."),
    ("messages_shut_out", "shut_out", "Messages under a key that was removed."),
    ("handshakes_refused", "refused", "Connections refused: wrong or no key, or no ZeroMQ."),
    ("connections_turned_away", "turned_away", "Connections refused for lack of room."),
)


def of_sockets(name: str, sockets: Mapping[str, Counts]) -> Iterator[Metric]:
    """What each bound socket of a daemon has seen."""
    for what, counted, text in _OF_SOCKET:
        values = {socket: getattr(counts, counted) for socket, counts in sockets.items()}
        yield counters(f"{name}_{what}", text, "socket", values)
    standing = GaugeMetricFamily(f"tarazu_{name}_connections", "Open connections.", labels=("socket",))
    for socket, counts in sockets.items():
        standing.add_metric((socket,), counts.connections)
    yield standing
