"""Sizes, counts, rates, shares and times as people read them; and sizes as people write them: `64K`, `1.5G`, `10GiB`.

The units of sizes are powers of 1024, as in `lfs`. What is not known is `-`. Also the numbers in a command line.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SUFFIX = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB, "p": 1 << 50, "e": 1 << 60}
_SIZE = r"(?i)(\d+(?:\.\d+)?)\s*([kmgtpe]?)(?:i?b)?"


def parse_bytes(text: str) -> int:
    """`"128M"` → 134217728. Raises ValueError for anything that is no whole number of bytes."""
    match = re.fullmatch(_SIZE, text.strip())
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


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `2 processes`, `2 replies`, `2 days`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{count} {noun}es"
    return f"{count} {noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{count} {noun}s"


def human_rate(bytes_per_s: float | None) -> str:
    """`2.1 GiB/s`."""
    return "-" if bytes_per_s is None else f"{human_bytes(bytes_per_s)}/s"


def human_duration(seconds: float) -> str:
    """`90 s`, `25 h`, `3.5 days`: in the largest unit of which there are two."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def human_time(unix_s: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """By the local clock."""
    return time.strftime(form, time.localtime(unix_s))


def figure(value: float | None, form: str = ".3f") -> str:
    return "-" if value is None or math.isnan(value) else f"{value:{form}}"


def percent(share: float | None) -> str:
    """`12.3 %`."""
    return "-" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def human_speed(relative: float | None) -> str:
    """Beside the usual one: 0.25 is `1/4.0`, 1 and more are `1`."""
    if relative is None:
        return "-"
    return f"1/{1 / relative:.1f}" if 0 < relative < 1 else "1"


_LARGEST_ARGUMENT = 1e18
_NUMBER_ARGUMENT = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_SIZE_ARGUMENT = r"\d+(?:\.\d+)?[kmgtKMGT](?:i?[bB])?"
_OPTION = r"-[A-Za-z](?=\d)|--?[A-Za-z][\w-]*=|[A-Za-z_][\w-]*="


def numeric_arguments(arguments: Sequence[str]) -> tuple[float, ...]:
    """The numbers among the arguments (without the program), in order: regressors of the prediction.

    `100000`, `-b 16m`, `-b16m`, `--size=2G`, `n=40` and `64x32x16` count; paths and words do not.
    `k m g t` are powers of 1024.
    """
    numbers: list[float] = []
    for argument in arguments:
        option = re.match(_OPTION, argument)
        text = argument[option.end() :] if option else argument
        parts = (
            re.split(r"[x,:]", text)
            if re.fullmatch(r"\d[\d.kmgtKMGT]*(?:[x,:][\d.kmgtKMGT]+)+", text)
            else [text]
        )
        values = [_argument_value(p) for p in parts]
        numbers.extend(v for v in values if v is not None)
    return tuple(numbers)


def _argument_value(text: str) -> float | None:
    if re.fullmatch(_SIZE_ARGUMENT, text):
        try:
            return float(parse_bytes(text))
        except ValueError:
            return None
    if re.fullmatch(_NUMBER_ARGUMENT, text):
        value = float(text)
        return value if abs(value) <= _LARGEST_ARGUMENT else None
    return None
