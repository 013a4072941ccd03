"""What a compute node moved since it booted: programs' bytes on Lustre (`llite`), and its networks'.

Of the network only devices count (`sys/class/net/*/device`), so that bonds and bridges are not counted twice;
InfiniBand by its ports, whose words are of four bytes, and then without the interfaces that run over it. LNet's own
bytes are taken off; where they cannot be read, the network is not known.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tarazu.stats import counters, lnet, reading
from tarazu.stats.params import find

_DATA = ("port_rcv_data", "port_xmit_data")
_WORD_BYTES = 4
_MOVED = ("read_bytes", "write_bytes")
_RECEIVED, _SENT = 0, 8
"""Columns of proc/net/dev."""


class NodeCounters(NamedTuple):
    """Bytes; None: that cannot be read."""

    read: int | None
    written: int | None
    network: int | None
    """Sent and received, LNet's too."""
    lnet: int | None


def params() -> tuple[str, ...]:
    return ("llite.*.stats", "lnet.stats", "proc/net/dev")


def read(root: str | Path) -> NodeCounters:
    root = Path(root)
    moved = [_stats(path) for path in find(root, "llite.*.stats").values()]
    known = [each for each in moved if each is not None]
    whole = bool(known) and len(known) == len(moved)
    return NodeCounters(
        sum(each[0] for each in known) if whole else None,
        sum(each[1] for each in known) if whole else None,
        _network(root),
        _lnet(root),
    )


def since(now: NodeCounters, before: NodeCounters) -> tuple[int | None, int | None, int | None]:
    """(read, written, network besides LNet's) between two readings; a counter that began again counts from zero."""
    read_bytes, written, network, of_lnet = (
        None if a is None or b is None else a - b if a >= b else a for a, b in zip(now, before, strict=True)
    )
    besides = None if network is None or of_lnet is None else max(0, network - of_lnet)
    return read_bytes, written, besides


def _stats(path: Path) -> tuple[int, int] | None:
    try:
        stats = counters.parse(reading.text(path))
    except (OSError, ValueError):
        return None
    if stats.unknown.intersection(_MOVED):
        return None
    return stats.row("read_bytes").sum, stats.row("write_bytes").sum


def _lnet(root: Path) -> int | None:
    for path in find(root, "lnet.stats").values():
        try:
            stats = lnet.parse(reading.text(path))
            if not stats.knows(stats, "send_length", "recv_length"):
                return None
            return stats.send_length + stats.recv_length
        except (OSError, ValueError):
            return None
    return None


def _network(root: Path) -> int | None:
    ports = sorted((root / "sys/class/infiniband").glob("*/ports/*/counters"))
    try:
        total = sum(
            _WORD_BYTES * _known(reading.text(port / name).strip()) for port in ports for name in _DATA
        )
        rows = parse_devices(reading.text(root / "proc/net/dev"))
    except (OSError, ValueError):
        return None
    for name, moved in rows.items():
        device = root / "sys/class/net" / name / "device"
        if device.exists() and not (ports and (device / "infiniband").exists()):
            if moved is None:
                return None
            total += moved
    return total


def _known(digits: str) -> int:
    """Raises ValueError for a counter that overflowed too."""
    if (number := counters.known(digits)) is None:
        raise ValueError(f"expected a count, found {digits[:40]!r}")
    return number


def parse_devices(text: str) -> dict[str, int | None]:
    """Name → bytes received and sent, from `proc/net/dev`; None where a counter overflowed. Raises ValueError."""
    devices: dict[str, int | None] = {}
    for line in reading.lines(text):
        name, colon, rest = line.partition(":")
        if not colon:
            continue
        words = rest.split()
        if len(words) <= _SENT or not all(
            words[at].removeprefix("-").isdecimal() for at in (_RECEIVED, _SENT)
        ):
            raise ValueError(f"expected an interface and its counters, found {line[:60]!r}")
        received, sent = counters.known(words[_RECEIVED]), counters.known(words[_SENT])
        devices[name.strip()] = None if received is None or sent is None else received + sent
    return devices
