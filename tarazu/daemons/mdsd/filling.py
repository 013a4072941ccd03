"""How soon the first OST of a file system is full, at the rate of the last days: what mdsd keeps of the past for it.

A sample of what is used on each OST every few hours, for a week, in `filling.msgpack` in its directory. A file that
cannot be read is as good as none.
"""

from __future__ import annotations

import contextlib
import logging
import math
from pathlib import Path

import msgspec

from tarazu import durable
from tarazu.allocate.eligible import room_bytes
from tarazu.config import Weights
from tarazu.model import SystemView

log = logging.getLogger("tarazu.mdsd")
DAY_S = 86_400.0

SAMPLE_S, KEEP_S = 6 * 3600.0, 7 * DAY_S
LEAST_S = DAY_S
"""Over less than a day nobody can tell a rate from a burst."""
MOST_BYTES = 256 << 20


class Sample(msgspec.Struct, frozen=True, array_like=True):
    at_s: float
    """Unix time."""
    used_bytes: dict[int, int]
    """By OST."""


class Filling:
    """Times are Unix times, of a clock that may jump: what is later than now did not happen."""

    def __init__(self, directory: str, weights: Weights | None = None) -> None:
        """`directory`: mdsd's; nothing is kept where it is empty. `weights`: with the site's reserve."""
        self.weights = weights or Weights()
        self._path = Path(directory, "filling.msgpack") if directory else None
        self._samples: dict[str, list[Sample]] = {}
        if self._path is None:
            return
        try:
            with open(self._path, "rb") as file:
                self._samples = _decoder.decode(file.read(MOST_BYTES))
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("%s: expected samples of OSTs' fill, found none: %s", self._path, error)

    def due(self, fs_name: str, now_s: float) -> bool:
        last = max((s.at_s for s in self._samples.get(fs_name, []) if s.at_s <= now_s), default=-math.inf)
        return now_s - last >= SAMPLE_S

    def take(self, view: SystemView, now_s: float) -> None:
        """A sample; call when one is due."""
        if not view.osts:
            return
        kept = [s for s in self._samples.get(view.fs_name, []) if now_s - KEEP_S <= s.at_s <= now_s]
        used = {o.index: o.used_bytes for o in view.osts}
        self._samples[view.fs_name] = [*kept, Sample(now_s, used)]
        self._write()

    def days_until_full(self, view: SystemView, now_s: float) -> float | None:
        """Of the OST that is full first; None where none fills, or not enough of the past is known."""
        days = math.inf
        kept = [s for s in self._samples.get(view.fs_name, []) if s.at_s <= now_s - LEAST_S]
        for ost in view.osts if kept else ():
            before = kept[0].used_bytes.get(ost.index)
            if (
                before is not None
                and ost.usable
                and ost.used_bytes > before
                and room_bytes(ost, self.weights)
            ):
                per_s = (ost.used_bytes - before) / (now_s - kept[0].at_s)
                days = min(days, ost.avail_bytes / per_s / DAY_S)
        return None if days == math.inf else days

    def _write(self) -> None:
        if self._path:
            with contextlib.suppress(OSError):  # what is lost is learned again
                durable.replace(self._path, msgspec.msgpack.encode(self._samples), mode=0o600)


_decoder = msgspec.msgpack.Decoder(dict[str, list[Sample]])
