"""What an application's I/O is like over numbers of LNet routers: by its earlier runs, in the process of a forecast."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tarazu.daemons.clientd.forecasts.curves import profile_of
from tarazu.errors import BadInput, ConfigError
from tarazu.forwarding.curve_csv import read
from tarazu.model import JobStep
from tarazu.trace.records import KnownRun


def by(curves: str, benchmarks: str) -> bytes:
    """Files: curves that were measured, benchmarks from which they are estimated."""
    return msgspec.msgpack.encode((curves, benchmarks))


def profile(of: bytes, runs: Sequence[KnownRun], step: JobStep) -> bytes:
    """A `StepProfile`; empty where nothing is known."""
    curves, benchmarks = msgspec.msgpack.decode(of, type=tuple[str, str])
    found, _ = profile_of(runs, step, curves, benchmarks, "io-node")
    return msgspec.msgpack.encode(found) if found else b""


def unreadable(curves: str) -> Iterator[ConfigError]:
    """Why clientd could not use this file. One that is not on this node is other nodes' business."""
    if os.path.lexists(curves):
        try:
            read(Path(curves))
        except BadInput as error:
            yield ConfigError(f"part.routers.curves ({error.where})", error.expected, error.found)
