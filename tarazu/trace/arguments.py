"""Numeric arguments of a command line: regressors of the prediction, known before the run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tarazu.units import parse_bytes

_LARGEST = 1e18
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?[kmgtKMGT](?:i?[bB])?")
_OPTION = re.compile(r"-[A-Za-z](?=\d)|--?[A-Za-z][\w-]*=|[A-Za-z_][\w-]*=")


def numeric_arguments(arguments: Sequence[str]) -> tuple[float, ...]:
    """The numbers among the arguments (without the program), in order.

    `100000`, `-b 16m`, `-b16m`, `--size=2G`, `n=40` and `64x32x16` count; paths and words do not.
    `k m g t` are powers of 1024.
    """
    numbers: list[float] = []
    for argument in arguments:
        option = _OPTION.match(argument)
        text = argument[option.end() :] if option else argument
        parts = (
            re.split(r"[x,:]", text)
            if re.fullmatch(r"\d[\d.kmgtKMGT]*(?:[x,:][\d.kmgtKMGT]+)+", text)
            else [text]
        )
        values = [_value(p) for p in parts]
        numbers.extend(v for v in values if v is not None)
    return tuple(numbers)


def _value(text: str) -> float | None:
    if _SIZE.fullmatch(text):
        try:
            return float(parse_bytes(text))
        except ValueError:
            return None
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value if abs(value) <= _LARGEST else None
    return None
