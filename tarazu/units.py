"""Byte sizes as people write them: `64K`, `1.5G`, `10GiB`; the units are powers of 1024, as in `lfs`."""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SUFFIX = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB, "p": 1 << 50, "e": 1 << 60}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtpe]?)(?:i?b)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """`"128M"` → 134217728. Raises ValueError for anything that is no whole number of bytes."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"expected a size such as 64K, 128M or 2G, found {text!r}")
    number, suffix = match.groups()
    if "." in number:
        value = float(number) * _SUFFIX[suffix.lower()]
        if value != int(value):
            raise ValueError(f"expected a whole number of bytes, found {text!r}")
        return int(value)
    return int(number) * _SUFFIX[suffix.lower()]


def exact_bytes(size_bytes: int) -> str:
    """The shortest exact form, `134217728` → `"128M"`; `parse_bytes` reads it back."""
    for suffix in ("E", "P", "T", "G", "M", "K"):
        unit = _SUFFIX[suffix.lower()]
        if size_bytes and size_bytes % unit == 0:
            return f"{size_bytes // unit}{suffix}"
    return str(size_bytes)


def human_bytes(size_bytes: float) -> str:
    """Three significant digits for people, `2254857830` → `"2.1 GiB"`."""
    value = float(size_bytes)
    for suffix in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1024 or suffix == "PiB":
            return f"{value:.0f} {suffix}" if suffix == "B" else f"{value:.1f} {suffix}"
        value /= 1024
    raise AssertionError("unreachable")
