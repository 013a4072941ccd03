"""The mode of a lever that a command ordered: it counts instead of the setting, over restarts, until another one is."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Literal

import msgspec

from tarazu import durable
from tarazu.errors import StoreError
from tarazu.malformed import MALFORMED, described

log = logging.getLogger("tarazu.ordered")

Mode = Literal["observe", "advise", "apply"]


class Ordered(msgspec.Struct, frozen=True):
    mode: Mode
    reason: str
    at_s: float
    """Unix time."""


def ordered(path: Path) -> Ordered | None:
    """None where nothing was. Raises StoreError for what cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ordered)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(str(path), "a readable file", error.strerror) from None
    except MALFORMED as error:
        raise StoreError(str(path), "a mode that was ordered", str(error)) from None


def order(path: Path, mode: Mode, reason: str) -> None:
    """On disk when this returns. Raises StoreError."""
    data = msgspec.json.encode(Ordered(mode, reason, time.time())) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(path, data)
    except OSError as error:
        raise StoreError(str(path.parent), "a directory that can be written", error.strerror) from None


def reorder(path: Path, mode: Mode, reason: str, otherwise: Mode) -> Mode:
    """As `order`, also instead of one that cannot be read; the mode before, `otherwise` where none was ordered."""
    try:
        before = ordered(path)
    except StoreError as error:
        log.warning("%s: it is replaced", error)
        before = None
    order(path, mode, reason)
    return before.mode if before else otherwise


described(Ordered)
